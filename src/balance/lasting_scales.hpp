#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "hetseq/balance/time_history.hpp"

namespace hetseq {

/// The ranks' scales in the last batches of a history: those of few batches first, then those of
/// more and more. What several of these have in common is found once. Like ranks are taken to be
/// equally fast, except those that the batches show to differ.
class LastingScales {
public:
    /// `batches` must outlive the object. `believed`: by rank, taken where no time is known or the
    /// rank `is_idle`. `kinds`: by rank, the same number for like devices.
    LastingScales(const std::deque<std::vector<TimeBlock>>& batches,
                  std::vector<double> believed,
                  std::vector<bool> is_idle,
                  std::vector<int> kinds);

    /// Takes one more batch, the last one that it has not.
    void take_batch();
    std::size_t taken() const noexcept { return taken_; }
    /// By rank, over the batches taken, at least one.
    std::vector<double> scales() const;

private:
    std::vector<double> offsets(const std::vector<double>& scales) const;
    std::vector<int> groups() const;

    const std::deque<std::vector<TimeBlock>>& batches_;
    std::vector<double> believed_;
    std::vector<bool> is_idle_;
    std::vector<std::vector<std::size_t>> members_;  // by kind
    std::size_t taken_ = 0;
    std::vector<std::vector<double>> ratios_;  // by rank, ascending, of the batches taken
    std::deque<std::vector<double>> offsets_;  // by batch taken, then by rank: of the logarithm of
                                               // a scale from the median of its kind
};

}  // namespace hetseq
