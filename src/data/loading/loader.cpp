#include "hetseq/data/loading/loader.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/fault_point.hpp"

#include "data/blocks/row_copy.hpp"
#include "data/corpus_impl.hpp"
#include "share_requests.hpp"

namespace hetseq {

namespace {

Slice intersection(const Slice& a, const Slice& b) {
    const std::int64_t begin = std::max(a.begin, b.begin);
    return {begin, std::max(begin, std::min(a.end, b.end))};
}

// This rank's samples and their rows, for each of a request's groups.
using PlacedByGroup = std::vector<std::vector<PlacedSample>>;

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

    LoadedShare take();
    void request(const GlobalBatch& batch, std::span<const Slice> slices, const MicroBatchCap& cap);

    std::size_t outstanding = 0;

private:
    bool background() const noexcept { return corpus_->context.io.background(); }
    // The loader thread runs these, or the main thread if nothing runs in the background.
    void work();
    Outcome load(ShareRequest& request);
    void complete(Outcome& outcome);
    const ShareRequest::Segment& scheduled(ShareRequest& request, std::size_t index);
    LoadedShare assemble(ShareRequest& request, std::size_t& released);
    LoadedShare::Rows rows_for(const ShareRequest& request) const;
    static std::vector<std::int32_t> planned_lengths(const ShareRequest& request,
                                                     std::size_t field,
                                                     std::int64_t position_values);
    std::vector<std::int32_t> other_lengths(const ShareRequest& request, std::size_t field) const;
    PlacedByGroup place_samples(const ShareRequest& request) const;
    void copy_segment(const ShareRequest::Segment& segment,
                      std::span<const PlacedSample> placed,
                      LoadedShare::Rows& rows);

    std::shared_ptr<Corpus::Impl> corpus_;
    LoadedShare::Target target_;
    ShareRequests share_requests_;  // main thread only, if anything runs in the background
    std::exception_ptr failure_;    // of an earlier request

    std::atomic<bool> cancelled_{false};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<ShareRequest> requests_;
    std::deque<Outcome> ready_;
    activity::Helper helper_;
    std::thread thread_;
};

Loader::Impl::Impl(std::shared_ptr<Corpus::Impl> source,
                   const Collator& collator,
                   const Options& choice)
    : corpus_{std::move(source)},
      target_{.collator = &collator,
              .transfer = make_device_transfer(choice.device),
              .loss_terms = choice.loss_terms,
              .trains = choice.shuffle == Shuffle::yes},
      share_requests_{corpus_, choice.seed, choice.shuffle} {
    if (!background())
        return;
    // A thread settles its number of workers when it first asks, by what any thread last set. This
    // one has to ask before the loader's thread sets its own number, 1.
    at::get_num_threads();
    thread_ = std::thread([this] { work(); });
}

// The thread still releases the blocks of all requests, so that the other ranks can go on reading.
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

void Loader::Impl::request(const GlobalBatch& batch,
                           std::span<const Slice> slices,
                           const MicroBatchCap& cap) {
    ShareRequest request = share_requests_.make(batch, slices, cap);
    if (background())
        share_requests_.schedule(request);
    {
        const std::lock_guard lock{mutex_};
        requests_.push_back(std::move(request));
    }
    ++outstanding;
    changed_.notify_all();
}

// Where a collator makes samples elsewhere, it hears of a share while the one before is collated.
void Loader::Impl::work() {
    const activity::Helper::Thread helps(helper_);
    at::set_num_threads(1);
    const std::size_t most_begun = target_.collator->announces() ? 2 : 1;
    std::deque<Outcome> begun;
    while (true) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return cancelled_ || !requests_.empty() || !begun.empty(); });
        if (requests_.empty() && begun.empty())
            return;
        if (!requests_.empty() && begun.size() < most_begun) {
            ShareRequest request = std::move(requests_.front());
            requests_.pop_front();
            lock.unlock();
            begun.push_back(load(request));
            continue;
        }
        lock.unlock();
        complete(begun.front());
        lock.lock();
        ready_.push_back(std::move(begun.front()));
        begun.pop_front();
        changed_.notify_all();
    }
}

void Loader::Impl::complete(Outcome& outcome) {
    if (outcome.error)
        return;
    try {
        if (failure_)
            std::rethrow_exception(failure_);
        outcome.share->collate();
    } catch (...) {
        failure_ = outcome.error = std::current_exception();
    }
}

Outcome Loader::Impl::load(ShareRequest& request) {
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
    // Other ranks of the host may have no error and go on reading.
    for (; released < request.groups.size(); ++released)
        corpus_->cache.release(scheduled(request, released).use.ticket);
    return outcome;
}

// If nothing runs in the background, blocks are scheduled and read only now, group by group, since
// a group may need the slots of the one before.
const ShareRequest::Segment& Loader::Impl::scheduled(ShareRequest& request, std::size_t index) {
    if (request.segments.size() == index)
        share_requests_.schedule_group(request);
    return request.segments[index];
}

LoadedShare Loader::Impl::assemble(ShareRequest& request, std::size_t& released) {
    LoadedShare::Rows rows = rows_for(request);
    const PlacedByGroup placed = place_samples(request);
    for (; released < request.groups.size(); ++released) {
        const ShareRequest::Segment& segment = scheduled(request, released);
        if (!corpus_->cache.wait_for_blocks(segment.use, cancelled_))
            throw InternalError("loading was cancelled");
        copy_segment(segment, placed[released], rows);
        corpus_->cache.release(segment.use.ticket);
    }
    return LoadedShare(request.batch, request.slice, std::move(rows), target_, request.cap);
}

LoadedShare::Rows Loader::Impl::rows_for(const ShareRequest& request) const {
    const CorpusSchema& schema = corpus_->shards.schema();
    RowLengths lengths;
    std::size_t planned = 0, other = 0;
    for (const std::size_t field : corpus_->shards.ragged_fields()) {
        if (!schema.fields[field].sets_lengths)
            lengths.push_back(other_lengths(request, other++));
        else if (request.batch.items)
            lengths.push_back(
                planned_lengths(request, planned++, schema.fields[field].position_values));
    }
    return make_rows(corpus_->shards, request.slice.size(), lengths);
}

// The values of this rank's rows of a field that sets lengths.
std::vector<std::int32_t> Loader::Impl::planned_lengths(const ShareRequest& request,
                                                        std::size_t field,
                                                        std::int64_t position_values) {
    if (request.slice.size() == 0)
        return {};  // an epoch may have fewer samples than batches, and an empty one no lengths
    const std::vector<std::int32_t>& all = request.batch.items->lengths[field];
    std::vector<std::int32_t> own(all.begin() + request.slice.begin,
                                  all.begin() + request.slice.end);
    for (std::int32_t& length : own)
        length *= static_cast<std::int32_t>(position_values);
    return own;
}

// The same of a field that sets none.
std::vector<std::int32_t> Loader::Impl::other_lengths(const ShareRequest& request,
                                                      std::size_t field) const {
    std::vector<std::int32_t> own;
    for (std::int64_t place = request.slice.begin; place < request.slice.end; ++place) {
        const std::int64_t sample = request.sample_at(place);
        const std::int64_t block = sample / corpus_->layout.block_length;
        const std::int64_t row = sample % corpus_->layout.block_length;
        const RowLengths& of_block = *request.other_lengths.at(block).get();
        own.push_back(of_block[field][static_cast<std::size_t>(row)]);
    }
    return own;
}

PlacedByGroup Loader::Impl::place_samples(const ShareRequest& request) const {
    PlacedByGroup placed(request.groups.size());
    if (request.batch.items) {
        for (std::int64_t i = request.slice.begin; i < request.slice.end; ++i) {
            const std::int64_t sample = request.batch.items->samples[static_cast<std::size_t>(i)];
            const std::int64_t block = sample / corpus_->layout.block_length;
            const auto group = std::lower_bound(
                request.groups.begin(), request.groups.end(), request.group_of_block.at(block));
            placed[static_cast<std::size_t>(group - request.groups.begin())].push_back(
                {sample, i - request.slice.begin});
        }
        return placed;
    }
    for (std::size_t k = 0; k < placed.size(); ++k) {
        const std::int64_t group = request.groups[k];
        const Slice positions = intersection(
            request.slice, {request.order.group_begin(group), request.order.group_end(group)});
        placed[k].reserve(static_cast<std::size_t>(positions.size()));
        for (std::int64_t position = positions.begin; position < positions.end; ++position)
            placed[k].push_back({request.order(position), position - request.slice.begin});
    }
    return placed;
}

void Loader::Impl::copy_segment(const ShareRequest::Segment& segment,
                                std::span<const PlacedSample> placed,
                                LoadedShare::Rows& rows) {
    if (placed.empty())
        return;
    BlockPlaces places;
    for (std::size_t i = 0; i < segment.use.blocks.size(); ++i)
        places[segment.use.blocks[i]] = corpus_->cache.slot(segment.use.slots[i]).data();
    copy_rows(corpus_->shards, corpus_->layout, placed, places, rows);
}

LoadedShare Loader::Impl::take() {
    HETSEQ_ASSERT(outstanding > 0);
    const auto start = std::chrono::steady_clock::now();
    --outstanding;
    Outcome outcome;
    if (background()) {
        std::unique_lock lock{mutex_};
        helper_.wait(changed_, lock, [&] { return !ready_.empty(); });
        outcome = std::move(ready_.front());
        ready_.pop_front();
    } else {
        ShareRequest request = std::move(requests_.front());
        requests_.pop_front();
        outcome = load(request);
        complete(outcome);
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
    impl_->request(batch, slices, cap);
}

LoadedShare Loader::take() {
    return impl_->take();
}

std::size_t Loader::outstanding() const noexcept {
    return impl_->outstanding;
}

}  // namespace hetseq
