#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace hetseq {

/// One update or several in a row: how long each rank computed, and how long its cost says.
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

/// The updates since a cut, in blocks and batches. A block lasts 200 ms, or one update that lasts
/// longer: the pauses of a CPU quota, every 100 ms, even out in it. A batch lasts 5 s and has at
/// least 4 updates: a process that takes a core now and then fills few batches. 12 batches are
/// kept.
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
    /// Of the batches and what follows them.
    std::vector<TimeBlock> blocks() const;
    /// The last updates, each alone, by block from the last one back: 3 blocks or more, which are
    /// 12 updates, or 8 that lasted 7.5 s; `times` as many of all these, and at most 100 updates.
    /// Nothing where there are not as many.
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
