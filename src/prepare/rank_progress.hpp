#pragma once

#include <cstdint>
#include <utility>

#include "hetseq/prepare/prepare_progress.hpp"

namespace hetseq {

constexpr std::int64_t pairs_between_reports = 1024;

/// Tells how far a rank is. Its own work stands for that of all, since all have about the same.
class RankProgress {
public:
    /// `bytes`: of all text. `work`: of this rank, in any unit. Without `progress` it tells
    /// nothing.
    RankProgress(PrepareProgress progress, std::int64_t bytes, double work)
        : progress_{std::move(progress)}, bytes_{bytes}, work_{work} {}

    /// Something is complete, and counts from now on.
    void add(double work) { done_ += work; }
    /// Shows `work` more than what is complete.
    void show(double work) const {
        if (progress_ && work_ > 0)
            progress_(
                static_cast<std::int64_t>(static_cast<double>(bytes_) * (done_ + work) / work_),
                bytes_);
    }

private:
    PrepareProgress progress_;
    std::int64_t bytes_;
    double work_;
    double done_ = 0;
};

}  // namespace hetseq
