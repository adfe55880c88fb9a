#include "hetseq/balance/time_history.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hetseq {

namespace {

constexpr double block_ms = 200;
constexpr double batch_ms = 5000;
constexpr int batch_updates = 4;
constexpr std::size_t most_batches = 12;

// How many updates show that a rank's speed has changed.
constexpr int telling_updates = 12;
constexpr int fewest_updates = 8;
constexpr double telling_ms = 7500;
constexpr int fewest_blocks = 3;
constexpr std::size_t most_last = 100;

bool is_full(const TimeBlock& block) {
    return block.span_ms >= block_ms;
}

bool is_batch(const std::vector<TimeBlock>& blocks) {
    double span_ms = 0;
    int updates = 0;
    for (const TimeBlock& block : blocks) {
        span_ms += block.span_ms;
        updates += block.updates;
    }
    return span_ms >= batch_ms && updates >= batch_updates;
}

}  // namespace

void TimeBlock::add(const TimeBlock& later) {
    for (std::size_t r = 0; r < ms.size(); ++r) {
        ms[r] += later.ms[r];
        expected_ms[r] += later.expected_ms[r];
        update_ms[r] += later.update_ms[r];
    }
    span_ms += later.span_ms;
    updates += later.updates;
}

void TimeHistory::add(TimeBlock update) {
    last_.push_back(update);
    if (last_.size() > most_last)
        last_.pop_front();
    updates_ += update.updates;
    span_ms_ += update.span_ms;
    if (open_.empty() || is_full(open_.back()))
        open_.push_back(std::move(update));
    else
        open_.back().add(update);
    if (is_full(open_.back()) && is_batch(open_))
        close_batch();
}

void TimeHistory::close_batch() {
    batches_.push_back(std::exchange(open_, {}));
    if (batches_.size() > most_batches)
        batches_.pop_front();
}

void TimeHistory::forget() {
    *this = {};
}

std::vector<const TimeBlock*> TimeHistory::blocks() const {
    std::vector<const TimeBlock*> all;
    const auto append = [&](const std::vector<TimeBlock>& blocks) {
        for (const TimeBlock& block : blocks)
            all.push_back(&block);
    };
    for (const std::vector<TimeBlock>& batch : batches_)
        append(batch);
    append(open_);
    return all;
}

std::vector<std::vector<const TimeBlock*>> TimeHistory::last_blocks(int times) const {
    std::vector<std::vector<const TimeBlock*>> blocks;
    int updates = 0;
    double span_ms = 0, open_ms = block_ms;  // of all, of the last block
    for (auto update = last_.rbegin(); update != last_.rend(); ++update) {
        if (open_ms >= block_ms) {
            blocks.emplace_back();
            open_ms = 0;
        }
        blocks.back().push_back(&*update);
        open_ms += update->span_ms;
        span_ms += update->span_ms;
        ++updates;
        const bool tells = updates >= times * telling_updates ||
                           (updates >= times * fewest_updates && span_ms >= times * telling_ms);
        if (tells && std::ssize(blocks) >= times * fewest_blocks && open_ms >= block_ms)
            return blocks;
    }
    return {};
}

}  // namespace hetseq
