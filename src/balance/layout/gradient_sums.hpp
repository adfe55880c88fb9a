#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/balance/layout/plan_workers.hpp"

#include "worker_kind.hpp"

namespace hetseq {

/// Parameters that two units share: both have their gradients.
struct TiedPair {
    std::size_t first = 0, second = 0;
    double mb = 0;
};

/// A worker as sums of gradients see it.
struct SummedWorker {
    std::span<const int> ranks;  // by stage
    std::span<const ChainStage> stages;
    std::size_t size = 0;  // of LayoutProblem::sizes
    double ms = 0;         // when its last backward ends
    const WorkerKind* kind = nullptr;
};

/// What units' gradients take, and when they are summed (`plan_workers` says how).
class GradientSums {
public:
    /// `problem` outlives the sums.
    explicit GradientSums(const LayoutProblem& problem);

    std::span<const TiedPair> tied() const noexcept { return tied_; }
    /// When all sums have ended, from the update's begin; `part` of an all-reduce's time is taken
    /// [ms]. Late ones begin with the next update.
    double end_ms(std::span<const SummedWorker> workers, double part = 1) const;
    /// All-reduces of all gradients, one after another [ms].
    double whole_ms(std::span<const int> ranks) const;

private:
    struct Segment {
        std::size_t begin = 0, end = 0;
        std::vector<int> ranks;
    };

    static std::vector<Segment> segments_of(std::span<const SummedWorker> workers);
    std::vector<double> ready_ms(std::span<const SummedWorker> workers) const;
    double own_mb(std::size_t begin, std::size_t end) const;
    const std::vector<TiedUnits>& tied_in(const SummedWorker& worker) const;
    double tied_end_ms(const SummedWorker& worker,
                       std::span<const double> ready,
                       std::vector<double>& free_ms) const;
    double tied_end_ms(std::span<const Segment> segments,
                       std::span<const double> ready,
                       double part,
                       std::vector<double>& free_ms) const;

    const LayoutProblem& problem_;
    std::vector<double> unit_mb_;
    std::vector<TiedPair> tied_;
};

}  // namespace hetseq
