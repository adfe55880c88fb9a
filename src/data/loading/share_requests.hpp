#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/data/order/global_order.hpp"
#include "hetseq/data/order/micro_batch_cap.hpp"

#include "data/corpus_impl.hpp"

namespace hetseq {

/// A request for one share, and the blocks that the share comes from.
struct ShareRequest {
    /// The part that lies in one group of mixed blocks.
    struct Segment {
        std::int64_t group = 0;
        BlockUse use;
    };

    GlobalBatch batch;
    Slice slice;  // of this rank
    MicroBatchCap cap;
    GlobalOrder order;
    std::vector<std::int64_t> groups;  // that the ranks of this host take samples from
    std::vector<Segment> segments;     // of the groups scheduled so far
    // By block that the batch's items come from: the group that it is mixed in.
    std::unordered_map<std::int64_t, std::int64_t> group_of_block;
    // By block that this rank's samples come from: the lengths of the rows that set none of the
    // plan's.
    std::unordered_map<std::int64_t, std::shared_future<BlockLengths::Lengths>> other_lengths;

    /// The sample at `place` of the batch.
    std::int64_t sample_at(std::int64_t place) const {
        return batch.items ? batch.items->samples[static_cast<std::size_t>(place)] : order(place);
    }

    /// The last group that its batch's samples come from; `group` for rows of one shape.
    std::int64_t time_group(std::int64_t group) const { return batch.items ? batch.window : group; }
};

/// Makes requests for shares of a corpus, and schedules the loading of their blocks. Every rank of
/// the host makes the same calls in the same order.
class ShareRequests {
public:
    ShareRequests(std::shared_ptr<Corpus::Impl> corpus, std::uint64_t seed, Shuffle shuffle);

    ShareRequest make(const GlobalBatch& batch,
                      std::span<const Slice> slices,
                      const MicroBatchCap& cap) const;
    /// Loads the blocks of all groups, and ahead.
    void schedule(ShareRequest& request) const;
    /// Loads the blocks of the first group that is not scheduled yet.
    void schedule_group(ShareRequest& request) const;

private:
    const GlobalOrder& order_of(std::int64_t epoch) const;
    std::int64_t time_of(std::int64_t epoch, std::int64_t group) const;
    std::int64_t next_use(const ShareRequest& request,
                          std::int64_t group,
                          std::int64_t block) const;
    void add_groups(ShareRequest& request,
                    const Slice& slice,
                    std::set<std::int64_t>& groups) const;
    void ask_for_other_lengths(ShareRequest& request) const;
    void schedule_ahead(const ShareRequest& request, std::int64_t group) const;

    std::shared_ptr<Corpus::Impl> corpus_;
    std::uint64_t seed_;
    Shuffle shuffle_;
    std::int64_t most_groups_ = 0;                                     // of an epoch
    mutable std::deque<std::pair<std::int64_t, GlobalOrder>> orders_;  // the last used first
};

}  // namespace hetseq
