#include "share_requests.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

constexpr std::size_t kept_orders = 3;

}  // namespace

ShareRequests::ShareRequests(std::shared_ptr<Corpus::Impl> corpus,
                             std::uint64_t seed,
                             Shuffle shuffle)
    : corpus_{std::move(corpus)}, seed_{seed}, shuffle_{shuffle} {
    const GlobalOrder::Geometry& geometry = corpus_->geometry;
    most_groups_ = shuffle == Shuffle::yes ? geometry.most_groups() : geometry.blocks();
}

const GlobalOrder& ShareRequests::order_of(std::int64_t epoch) const {
    const auto known = std::find_if(
        orders_.begin(), orders_.end(), [&](const auto& order) { return order.first == epoch; });
    if (known != orders_.end()) {
        std::rotate(orders_.begin(), known, known + 1);
        return orders_.front().second;
    }
    if (orders_.size() == kept_orders)
        orders_.pop_back();
    orders_.emplace_front(epoch, GlobalOrder(corpus_->geometry, seed_, epoch, shuffle_));
    return orders_.front().second;
}

std::int64_t ShareRequests::time_of(std::int64_t epoch, std::int64_t group) const {
    return epoch * most_groups_ + group;
}

// The groups that samples [slice.begin, slice.end) of the batch come from.
void ShareRequests::add_groups(ShareRequest& request,
                               const Slice& slice,
                               std::set<std::int64_t>& groups) const {
    if (request.batch.items) {
        const std::vector<std::int64_t>& samples = request.batch.items->samples;
        for (std::int64_t i = slice.begin; i < slice.end; ++i) {
            const std::int64_t block =
                samples[static_cast<std::size_t>(i)] / corpus_->layout.block_length;
            const auto [known, is_new] = request.group_of_block.try_emplace(block, 0);
            if (is_new)
                groups.insert(known->second =
                                  request.order.group_of_block(block, request.batch.window));
        }
        return;
    }
    const std::int64_t last = request.order.group_of(slice.end - 1);
    for (std::int64_t group = request.order.group_of(slice.begin); group <= last; ++group)
        groups.insert(group);
}

// Before its blocks are scheduled, so that the I/O thread reads the lengths first.
void ShareRequests::ask_for_other_lengths(ShareRequest& request) const {
    if (!corpus_->other_lengths)
        return;
    for (std::int64_t place = request.slice.begin; place < request.slice.end; ++place) {
        const std::int64_t block = request.sample_at(place) / corpus_->layout.block_length;
        if (request.other_lengths.count(block) == 0)
            request.other_lengths[block] = corpus_->other_lengths->ask(block);
    }
}

ShareRequest ShareRequests::make(const GlobalBatch& batch,
                                 std::span<const Slice> slices,
                                 const MicroBatchCap& cap) const {
    const DataContext::Impl& context = corpus_->context;
    HETSEQ_ASSERT(std::ssize(slices) == context.world.size());
    const auto own = static_cast<std::size_t>(context.world.rank());
    ShareRequest request{batch, slices[own], cap, order_of(batch.epoch), {}, {}, {}, {}};
    std::set<std::int64_t> groups;
    for (const int rank : context.node_ranks) {
        const Slice& slice = slices[static_cast<std::size_t>(rank)];
        if (slice.size() > 0)
            add_groups(request, slice, groups);
    }
    request.groups.assign(groups.begin(), groups.end());
    ask_for_other_lengths(request);
    return request;
}

void ShareRequests::schedule(ShareRequest& request) const {
    while (request.segments.size() < request.groups.size())
        schedule_group(request);
    if (!request.groups.empty())
        schedule_ahead(request, request.time_group(request.groups.back()));
}

// The time when `block` of `group` is used again after this request.
std::int64_t ShareRequests::next_use(const ShareRequest& request,
                                     std::int64_t group,
                                     std::int64_t block) const {
    const std::int64_t epoch = request.batch.epoch;
    const std::int64_t now = time_of(epoch, request.time_group(group));
    if (request.batch.items) {
        if (!request.batch.ends_window)
            return now;
        if (group == request.batch.window)
            return now + 1;  // the next window takes what this one leaves over
    } else if (request.batch.end < request.order.group_end(group)) {
        return now;
    }
    const std::int64_t behind = request.time_group(group) + 1;
    if (const auto next = request.order.next_group_of_block(block, behind))
        return time_of(epoch, *next);
    const auto next = order_of(epoch + 1).next_group_of_block(block, 0);
    return next ? time_of(epoch + 1, *next) : time_of(epoch + 2, 0);
}

void ShareRequests::schedule_group(ShareRequest& request) const {
    const std::int64_t group = request.groups[request.segments.size()];
    std::vector<BlockSchedule::Block> blocks;
    for (const std::int64_t block : request.order.group_blocks(group))
        blocks.push_back({block, next_use(request, group, block)});
    const std::int64_t now = time_of(request.batch.epoch, request.time_group(group));
    request.segments.push_back({group, corpus_->schedule.use(blocks, now)});
    corpus_->enqueue(request.segments.back().use.loads);
}

// Loads the group after the last one if the cache has room, so that its blocks are there when a
// batch first asks for them.
void ShareRequests::schedule_ahead(const ShareRequest& request, std::int64_t group) const {
    const std::int64_t epoch = request.batch.epoch;
    const std::int64_t now = time_of(epoch, group);
    const bool same_epoch = group + 1 < request.order.groups();
    if (!same_epoch && shuffle_ == Shuffle::no)
        return;
    const std::vector<std::int64_t> blocks =
        same_epoch ? request.order.group_blocks(group + 1) : order_of(epoch + 1).group_blocks(0);
    const std::int64_t when = same_epoch ? now + 1 : time_of(epoch + 1, 0);
    corpus_->enqueue(corpus_->schedule.prefetch(blocks, now, when));
}

}  // namespace hetseq
