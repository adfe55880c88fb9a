#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace hetseq {

/// One update or several in a row: how long each rank computed, and how long it should have by its
/// cost.
struct TimeBlock {
    std::vector<double> ms;           // by rank
    std::vector<double> expected_ms;  // by rank; 0: no time is known
    std::vector<double> update_ms;    // by rank: what else each did itself, once an update
    double span_ms = 0;               // the slowest rank's time
    int updates = 0;

    bool knows(std::size_t rank) const { return expected_ms[rank] > 0; }
    double ratio(std::size_t rank) const { return ms[rank] / expected_ms[rank]; }
    void add(const TimeBlock& later);
};

/// The updates since a cut, in blocks and batches. A block lasts 200 ms, or one update if that is
/// longer, so that the pauses of a CPU quota, every 100 ms, even out in it. A batch lasts 5 s and
/// has at least 4 updates, so that a process which takes a core now and then fills few batches. 12
/// batches are kept.
class TimeHistory {
public:
    /// `update`: a single one.
    void add(TimeBlock update);
    void forget();

    int updates() const noexcept { return updates_; }
    double span_ms() const noexcept { return span_ms_; }
    /// Whether the last update completed a batch.
    bool batch_ended() const noexcept { return updates_ > 0 && open_.empty(); }
    const std::deque<std::vector<TimeBlock>>& batches() const noexcept { return batches_; }
    /// Of the batches and what follows them; they are valid until the history changes.
    std::vector<const TimeBlock*> blocks() const;
    /// The last updates, each alone, grouped by block, from the last block back. There are at least
    /// 3 blocks with 12 updates, or with 8 that lasted 7.5 s. All these numbers are multiplied by
    /// `times`, up to 100 updates. Empty if there are not as many.
    std::vector<std::vector<const TimeBlock*>> last_blocks(int times) const;

private:
    void close_batch();

    std::deque<std::vector<TimeBlock>> batches_;
    std::vector<TimeBlock> open_;  // of the batch that has begun
    std::deque<TimeBlock> last_;   // single updates
    int updates_ = 0;
    double span_ms_ = 0;
};

}  // namespace hetseq
