#include "block_queue.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_assigned = 2;
constexpr double shortest_s = 1e-6;

}  // namespace

BlockQueue::BlockQueue(std::int64_t blocks, int ranks)
    : blocks_{blocks}, ranks_(static_cast<std::size_t>(ranks)) {}

// A rank that has finished none is taken for an average one.
double BlockQueue::seconds_of_block(const Rank& rank) const {
    if (rank.is_known())
        return std::max(rank.seconds / static_cast<double>(rank.finished), shortest_s);
    double sum = 0;
    int known = 0;
    for (const Rank& other : ranks_)
        if (other.is_known()) {
            sum += seconds_of_block(other);
            ++known;
        }
    return known > 0 ? sum / known : 1;
}

// The ranks that get some of the blocks that are left, if these are cut so that all ends soonest.
std::vector<bool> BlockQueue::ranks_worth_more() const {
    std::vector<StepCost> costs;
    for (const Rank& rank : ranks_) {
        const double block_ms = 1000 * seconds_of_block(rank);
        costs.push_back({.start_ms = block_ms * static_cast<double>(rank.assigned),
                         .unit_ms = block_ms,
                         .micro_batch = 1});
    }
    std::vector<bool> worth;
    for (const std::int64_t share : allocate(costs, blocks_ - next_))
        worth.push_back(share > 0);
    return worth;
}

std::optional<BlockQueue::Assignment> BlockQueue::next() {
    if (next_ == blocks_)
        return std::nullopt;
    const std::vector<bool> worth = ranks_worth_more();
    std::optional<std::size_t> soonest;
    double soonest_s = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const Rank& rank = ranks_[r];
        const bool is_free =
            rank.is_known() ? rank.assigned < most_assigned && worth[r] : rank.assigned == 0;
        const double end_s = seconds_of_block(rank) * static_cast<double>(rank.assigned + 1);
        if (is_free && (!soonest || end_s < soonest_s)) {
            soonest = r;
            soonest_s = end_s;
        }
    }
    if (!soonest)
        return std::nullopt;
    ++ranks_[*soonest].assigned;
    return Assignment{next_++, static_cast<int>(*soonest)};
}

void BlockQueue::finish(int rank, double seconds) {
    Rank& done = ranks_[static_cast<std::size_t>(rank)];
    HETSEQ_ASSERT(done.assigned > 0);
    --done.assigned;
    ++done.finished;
    done.seconds += seconds;
}

}  // namespace hetseq
