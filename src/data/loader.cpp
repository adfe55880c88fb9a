#include "hetseq/data/loader.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "hetseq/util/activity.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/fault_point.hpp"

#include "corpus_impl.hpp"
#include "data/blocks/row_copy.hpp"

namespace hetseq {

namespace {

Slice intersection(const Slice& a, const Slice& b) {
    const std::int64_t begin = std::max(a.begin, b.begin);
    return {begin, std::max(begin, std::min(a.end, b.end))};
}

// The part of a request that lies in one group of mixed blocks.
struct Segment {
    std::int64_t group = 0;
    BlockUse use;
};

struct Request {
    GlobalBatch batch;
    Slice slice;  // of this rank
    MicroBatchCap cap;
    GlobalOrder order;
    std::vector<std::int64_t> groups;  // that the ranks of this host take samples from
    std::vector<Segment> segments;     // of the groups scheduled so far

    /// The last group that its batch's samples come from.
    std::int64_t time_group(std::int64_t group) const { return batch.items ? batch.window : group; }
};

// A share, or why there is none.
struct Outcome {
    std::optional<LoadedShare> share;
    std::exception_ptr error;
};

double elapsed_ms(std::chrono::steady_clock::time_point since) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since)
        .count();
}

}  // namespace

struct Loader::Impl {
    Impl(std::shared_ptr<Corpus::Impl> source, const Collator& collator, const Options& choice);
    ~Impl();

    void add(Request request);
    LoadedShare take();
    Request make_request(const GlobalBatch& batch,
                         std::span<const Slice> slices,
                         const MicroBatchCap& cap) const;

    std::size_t outstanding = 0;

private:
    bool background() const noexcept { return corpus_->context.io.background(); }
    // Main thread.
    void schedule(Request& request);
    void schedule_group(Request& request);
    void schedule_ahead(const Request& request, std::int64_t group);
    std::int64_t time_of(std::int64_t epoch, std::int64_t group) const;
    std::int64_t next_use(const Request& request, std::int64_t group, std::int64_t block) const;
    void add_groups(const GlobalBatch& batch,
                    const GlobalOrder& order,
                    const Slice& slice,
                    std::set<std::int64_t>& groups) const;
    std::int64_t group_of_sample(const GlobalOrder& order, std::int64_t sample) const;
    GlobalOrder order_of(std::int64_t epoch) const;
    // Loader thread, or the main thread where nothing runs in the background.
    void work();
    Outcome load(Request& request);
    const Segment& scheduled(Request& request, std::size_t index);
    LoadedShare assemble(Request& request, std::size_t& released);
    LoadedShare::Rows rows_for(const Request& request) const;
    void place_samples(const Request& request, std::int64_t group);
    void copy_segment(const Request& request, const Segment& segment, LoadedShare::Rows& rows);

    std::shared_ptr<Corpus::Impl> corpus_;
    LoadedShare::Target target_;
    Options options_;
    std::exception_ptr failure_;        // of an earlier request
    std::vector<PlacedSample> placed_;  // of the segment at work; the thread that loads

    std::atomic<bool> cancelled_{false};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Request> requests_;
    std::deque<Outcome> ready_;
    std::thread thread_;
};

Loader::Impl::Impl(std::shared_ptr<Corpus::Impl> source,
                   const Collator& collator,
                   const Options& choice)
    : corpus_{std::move(source)},
      target_{&collator, make_device_transfer(choice.device), choice.loss_terms},
      options_{choice} {
    if (!background())
        return;
    // A thread settles its number of workers when it first asks, by what any thread last set: this
    // one has to do so before the loader's takes one for itself, beside which none is idle.
    at::get_num_threads();
    thread_ = std::thread([this] { work(); });
}

// The thread hands back what is requested still, so that the other ranks' reading goes on.
Loader::Impl::~Impl() {
    if (!thread_.joinable())
        return;
    {
        const std::lock_guard lock{mutex_};
        cancelled_ = true;
    }
    changed_.notify_all();
    corpus_->cache.wake();
    thread_.join();
}

GlobalOrder Loader::Impl::order_of(std::int64_t epoch) const {
    return GlobalOrder(corpus_->geometry, options_.seed, epoch, options_.shuffle);
}

std::int64_t Loader::Impl::time_of(std::int64_t epoch, std::int64_t group) const {
    return epoch * order_of(0).groups() + group;
}

// The groups that samples [slice.begin, slice.end) of `batch` come from.
void Loader::Impl::add_groups(const GlobalBatch& batch,
                              const GlobalOrder& order,
                              const Slice& slice,
                              std::set<std::int64_t>& groups) const {
    if (batch.items) {
        for (std::int64_t i = slice.begin; i < slice.end; ++i)
            groups.insert(
                group_of_sample(order, batch.items->samples[static_cast<std::size_t>(i)]));
        return;
    }
    const std::int64_t last = order.group_of(slice.end - 1);
    for (std::int64_t group = order.group_of(slice.begin); group <= last; ++group)
        groups.insert(group);
}

std::int64_t Loader::Impl::group_of_sample(const GlobalOrder& order, std::int64_t sample) const {
    return order.group_of_block(sample / corpus_->layout.block_length);
}

Request Loader::Impl::make_request(const GlobalBatch& batch,
                                   std::span<const Slice> slices,
                                   const MicroBatchCap& cap) const {
    const DataContext::Impl& context = corpus_->context;
    HETSEQ_ASSERT(std::ssize(slices) == context.world.size());
    const GlobalOrder order = order_of(batch.epoch);
    std::set<std::int64_t> groups;
    for (const int rank : context.node_ranks) {
        const Slice& slice = slices[static_cast<std::size_t>(rank)];
        if (slice.size() > 0)
            add_groups(batch, order, slice, groups);
    }
    const auto own = static_cast<std::size_t>(context.world.rank());
    return {batch, slices[own], cap, order, {groups.begin(), groups.end()}, {}};
}

void Loader::Impl::add(Request request) {
    if (background())
        schedule(request);
    {
        const std::lock_guard lock{mutex_};
        requests_.push_back(std::move(request));
    }
    ++outstanding;
    changed_.notify_all();
}

void Loader::Impl::schedule(Request& request) {
    while (request.segments.size() < request.groups.size())
        schedule_group(request);
    if (!request.groups.empty())
        schedule_ahead(request, request.time_group(request.groups.back()));
}

// When `block` of `group` is used again, behind this request.
std::int64_t Loader::Impl::next_use(const Request& request,
                                    std::int64_t group,
                                    std::int64_t block) const {
    const std::int64_t epoch = request.batch.epoch;
    const std::int64_t now = time_of(epoch, request.time_group(group));
    if (request.batch.items) {
        if (!request.batch.ends_window)
            return now;
        if (group == request.batch.window)
            return now + 1;  // for what the window leaves over
    } else if (request.batch.end < request.order.group_end(group)) {
        return now;
    }
    return time_of(epoch + 1, order_of(epoch + 1).group_of_block(block));
}

// The first group that is not scheduled yet.
void Loader::Impl::schedule_group(Request& request) {
    const std::int64_t group = request.groups[request.segments.size()];
    std::vector<BlockSchedule::Block> blocks;
    for (const std::int64_t block : request.order.group_blocks(group))
        blocks.push_back({block, next_use(request, group, block)});
    const std::int64_t now = time_of(request.batch.epoch, request.time_group(group));
    request.segments.push_back({group, corpus_->schedule.use(blocks, now)});
    corpus_->enqueue(request.segments.back().use.loads);
}

// The group behind the last one, if the cache has room, so that its blocks are there when a batch
// first asks for them.
void Loader::Impl::schedule_ahead(const Request& request, std::int64_t group) {
    const std::int64_t epoch = request.batch.epoch;
    const std::int64_t now = time_of(epoch, group);
    const bool same_epoch = group + 1 < request.order.groups();
    if (!same_epoch && options_.shuffle == Shuffle::no)
        return;
    const std::vector<std::int64_t> blocks =
        same_epoch ? request.order.group_blocks(group + 1) : order_of(epoch + 1).group_blocks(0);
    corpus_->enqueue(corpus_->schedule.prefetch(blocks, now, now + 1));
}

void Loader::Impl::work() {
    at::set_num_threads(1);
    while (true) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return cancelled_ || !requests_.empty(); });
        if (requests_.empty())
            return;
        Request request = std::move(requests_.front());
        requests_.pop_front();
        lock.unlock();
        Outcome outcome = load(request);
        lock.lock();
        ready_.push_back(std::move(outcome));
        changed_.notify_all();
    }
}

Outcome Loader::Impl::load(Request& request) {
    Outcome outcome;
    std::size_t released = 0;
    try {
        if (failure_)
            std::rethrow_exception(failure_);
        fault_point("loader_thread", activity::now().update);
        outcome.share.emplace(assemble(request, released));
    } catch (...) {
        failure_ = outcome.error = std::current_exception();
    }
    // Other ranks of the host may do well and go on reading.
    for (; released < request.groups.size(); ++released)
        corpus_->cache.release(scheduled(request, released).use.ticket);
    return outcome;
}

// If nothing runs in the background, blocks are scheduled and read only now, group by group: a
// group may need the slots of the one before.
const Segment& Loader::Impl::scheduled(Request& request, std::size_t index) {
    if (request.segments.size() == index)
        schedule_group(request);
    return request.segments[index];
}

LoadedShare Loader::Impl::assemble(Request& request, std::size_t& released) {
    LoadedShare::Rows rows = rows_for(request);
    for (; released < request.groups.size(); ++released) {
        const Segment& segment = scheduled(request, released);
        if (!corpus_->cache.wait_for_blocks(segment.use, cancelled_))
            throw InternalError("loading was cancelled");
        copy_segment(request, segment, rows);
        corpus_->cache.release(segment.use.ticket);
    }
    return LoadedShare(request.batch, request.slice, std::move(rows), target_, request.cap);
}

LoadedShare::Rows Loader::Impl::rows_for(const Request& request) const {
    RowLengths lengths;
    if (request.batch.items)
        for (const std::vector<std::int32_t>& field : request.batch.items->lengths)
            lengths.emplace_back(field.begin() + request.slice.begin,
                                 field.begin() + request.slice.end);
    return make_rows(corpus_->shards, request.slice.size(), lengths);
}

// This rank's samples in a group, and their rows.
void Loader::Impl::place_samples(const Request& request, std::int64_t group) {
    placed_.clear();
    if (request.batch.items) {
        for (std::int64_t i = request.slice.begin; i < request.slice.end; ++i) {
            const std::int64_t sample = request.batch.items->samples[static_cast<std::size_t>(i)];
            if (group_of_sample(request.order, sample) == group)
                placed_.push_back({sample, i - request.slice.begin});
        }
        return;
    }
    const Slice positions = intersection(
        request.slice, {request.order.group_begin(group), request.order.group_end(group)});
    for (std::int64_t position = positions.begin; position < positions.end; ++position)
        placed_.push_back({request.order(position), position - request.slice.begin});
}

void Loader::Impl::copy_segment(const Request& request,
                                const Segment& segment,
                                LoadedShare::Rows& rows) {
    place_samples(request, segment.group);
    if (placed_.empty())
        return;
    BlockPlaces places;
    for (std::size_t i = 0; i < segment.use.blocks.size(); ++i)
        places[segment.use.blocks[i]] = corpus_->cache.slot(segment.use.slots[i]).data();
    copy_rows(corpus_->shards, corpus_->layout, placed_, places, rows);
}

LoadedShare Loader::Impl::take() {
    HETSEQ_ASSERT(outstanding > 0);
    const auto start = std::chrono::steady_clock::now();
    --outstanding;
    Outcome outcome;
    if (background()) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return !ready_.empty(); });
        outcome = std::move(ready_.front());
        ready_.pop_front();
    } else {
        Request request = std::move(requests_.front());
        requests_.pop_front();
        outcome = load(request);
    }
    if (outcome.error)
        std::rethrow_exception(outcome.error);
    outcome.share->wait_ms_ = elapsed_ms(start);
    outcome.share->arrive();
    return std::move(*outcome.share);
}

Loader::Loader(Corpus& corpus, const Collator& collator, const Options& options)
    : impl_{std::make_unique<Impl>(corpus.impl(), collator, options)} {}

Loader::~Loader() = default;

void Loader::request(const GlobalBatch& batch,
                     std::span<const Slice> slices,
                     const MicroBatchCap& cap) {
    impl_->add(impl_->make_request(batch, slices, cap));
}

LoadedShare Loader::take() {
    return impl_->take();
}

std::size_t Loader::outstanding() const noexcept {
    return impl_->outstanding;
}

}  // namespace hetseq
