#include "speaker.hpp"

#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/cuda/CUDAGuard.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"

#include "comm/host/cuda_try.hpp"
#include "comm/nccl/nccl_ranges.hpp"
#include "mixed_communicator.hpp"

namespace hetseq {

namespace {

constexpr int speaker_in_group = 0;

// On the current stream. Both are contiguous, and have as many values.
void copy_range(const at::Tensor& to, const at::Tensor& from, const OwnedRange& range) {
    to.view(-1)
        .narrow(0, range.begin, range.length)
        .copy_(from.view(-1).narrow(0, range.begin, range.length), /*non_blocking=*/true);
}

}  // namespace

class Speaker::StagedWork final : public Work {
public:
    StagedWork(std::shared_ptr<Speaker> speaker,
               at::Tensor tensor,
               std::shared_ptr<NcclSpan> span,
               std::shared_ptr<CollectiveResult> result)
        : speaker_{std::move(speaker)},
          tensor_{std::move(tensor)},
          span_{std::move(span)},
          result_{std::move(result)} {}

    void wait() override {
        wait_for_host();
        wait_for_device(span_->end.get());
        let_current_stream_wait(tensor_.device(), span_->end.get());
    }
    void wait_then(const std::function<void()>& then,
                   const std::function<void()>& meanwhile) override {
        wait_for_host();
        let_current_stream_wait(tensor_.device(), span_->end.get());
        then();
        const CudaEvents::Lent all = speaker_->record_current(tensor_.device());
        meanwhile();
        wait_for_device(span_->end.get());
        const std::lock_guard lock{speaker_->mutex_};
        speaker_->channel_->wait_for_own(all.get());
    }
    // A failure is told by `wait`.
    bool done() override {
        return result_->done() &&
               (span_->end.get() == nullptr || speaker_->channel_->passed(span_->end.get()));
    }
    double own_ms() override { return span_->ms(); }

private:
    void wait_for_host() {
        const activity::Waiting waiting;
        speaker_->thread_.finish(*result_);
    }
    // With the deadline, and NCCL's own errors.
    void wait_for_device(cudaEvent_t event) {
        const std::lock_guard lock{speaker_->mutex_};
        speaker_->channel_->wait_for(span_->ready.get(), event);
    }

    std::shared_ptr<Speaker> speaker_;  // whose events these are
    at::Tensor tensor_;
    std::shared_ptr<NcclSpan> span_;
    std::shared_ptr<CollectiveResult> result_;
};

std::unique_ptr<Work> Speaker::start(const at::Tensor& tensor,
                                     std::function<void(const NcclSpan&)> steps) {
    auto span = std::make_shared<NcclSpan>();
    span->ready = record_current(tensor.device());
    keep_for(*channel_, tensor);
    auto result = thread_.enqueue([this, span, steps = std::move(steps)] {
        const std::lock_guard lock{mutex_};
        const c10::NoGradGuard no_grad;
        const c10::cuda::CUDAStreamGuard guard{channel_->stream()};
        cudaStream_t stream = channel_->stream().stream();
        channel_->guarded([&] {
            CUDA_TRY(cudaStreamWaitEvent(stream, span->ready.get(), 0));
            span->begin = channel_->timed_events().record(stream);
            steps(*span);
            span->end = channel_->timed_events().record(stream);
        });
    });
    return std::make_unique<StagedWork>(
        shared_from_this(), tensor, std::move(span), std::move(result));
}

Speaker::Speaker(std::shared_ptr<NcclChannel> channel,
                 std::shared_ptr<MpiCollectives> meeting,
                 RunOn run_on,
                 std::int64_t piece_bytes)
    : meeting_{std::move(meeting)},
      channel_{std::move(channel)},
      piece_bytes_{piece_bytes},
      thread_{run_on} {
    channel_->joined([meeting = meeting_] {
        if (meeting->abandoned())
            throw CommError("a collective was abandoned", "this rank is ending");
    });
}

std::unique_ptr<Work> Speaker::start_all_reduce_sum(const at::Tensor& tensor) {
    return start(tensor, [this, tensor](const NcclSpan& span) {
        if (has_members())
            launch_nccl_reduce(*channel_, tensor);
        const at::Tensor host = to_host(tensor, span);
        meeting_->all_reduce_sum(host);
        tensor.copy_(host, /*non_blocking=*/true);
        if (has_members())
            launch_nccl_broadcast(*channel_, tensor, speaker_in_group);
    });
}

std::unique_ptr<Work> Speaker::start_reduce_scatter_sum(const at::Tensor& tensor,
                                                        std::vector<OwnedRange> met,
                                                        GroupRanges passed) {
    return start(
        tensor,
        [this, tensor, met = std::move(met), passed = std::move(passed)](const NcclSpan& span) {
            if (has_members())
                launch_nccl_reduce(*channel_, tensor);
            const at::Tensor host = to_host(tensor, span);
            meeting_->reduce_scatter_sum(host, met);
            for (const OwnedRange& range : met)
                if (is_own(range))
                    copy_range(tensor, host, range);
            if (has_members())
                launch_nccl_all_gather(*channel_, tensor, passed.to_members);
        });
}

std::unique_ptr<Work> Speaker::start_all_gather(const at::Tensor& tensor,
                                                std::vector<OwnedRange> met,
                                                GroupRanges passed) {
    return start(
        tensor,
        [this, tensor, met = std::move(met), passed = std::move(passed)](const NcclSpan& span) {
            if (has_members())
                launch_nccl_all_gather(*channel_, tensor, passed.own);
            const at::Tensor host = host_memory(tensor);
            for (const OwnedRange& range : met)
                if (is_own(range))
                    copy_range(host, tensor, range);
            wait_for_copies(span);
            meeting_->all_gather(host, met);
            for (const OwnedRange& range : met)
                if (!is_own(range))
                    copy_range(tensor, host, range);
            if (has_members())
                launch_nccl_all_gather(*channel_, tensor, passed.from_others);
        });
}

std::unique_ptr<Work> Speaker::start_broadcast(const at::Tensor& tensor,
                                               int root_in_group,
                                               int meeting_root) {
    return start(tensor, [this, tensor, root_in_group, meeting_root](const NcclSpan& span) {
        if (has_members() && root_in_group >= 0)
            launch_nccl_broadcast(*channel_, tensor, root_in_group);
        for (const at::Tensor& piece : pieces_of(tensor, piece_bytes_)) {
            const at::Tensor host = to_host(piece, span);
            meeting_->broadcast(host, meeting_root);
            piece.copy_(host, /*non_blocking=*/true);
        }
        if (has_members() && root_in_group < 0)
            launch_nccl_broadcast(*channel_, tensor, speaker_in_group);
    });
}

// While the thread may be at work: it uses nothing of the channel but its events.
CudaEvents::Lent Speaker::record_current(at::Device device) {
    return channel_->events().record(current_stream(device));
}

// Pinned, for as many values, and used again by the next collective: `wait_for_copies` comes before
// the host writes to it.
at::Tensor Speaker::host_memory(const at::Tensor& tensor) {
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    if (!host_.defined() || host_.numel() < bytes)
        host_ = at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(true));
    return host_.narrow(0, 0, bytes).view(tensor.scalar_type()).view(tensor.sizes());
}

// Those to the host, and those from it of earlier collectives.
void Speaker::wait_for_copies(const NcclSpan& span) {
    const CudaEvents::Lent copied = channel_->events().record(channel_->stream().stream());
    channel_->wait_for(span.ready.get(), copied.get());
}

at::Tensor Speaker::to_host(const at::Tensor& tensor, const NcclSpan& span) {
    const at::Tensor host = host_memory(tensor);
    host.copy_(tensor, /*non_blocking=*/true);
    wait_for_copies(span);
    return host;
}

}  // namespace hetseq
