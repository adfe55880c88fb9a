#include <algorithm>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/cuda/CUDAGuard.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"

#include "comm/host/cuda_try.hpp"
#include "comm/mpi/collective_thread.hpp"
#include "comm/nccl/nccl_join.hpp"
#include "comm/nccl/nccl_work.hpp"
#include "mixed_communicator.hpp"

namespace hetseq {

namespace {

// The first rank of a group of GPUs: meets the others over MPI, through pinned memory of the host.
// Its thread drives MPI and, in between, NCCL: the group's other ranks ask NCCL for the same in the
// same order, and wait for it on their streams alone.
class Speaker : public std::enable_shared_from_this<Speaker> {
public:
    Speaker(std::shared_ptr<NcclChannel> channel,
            int group_size,
            std::shared_ptr<MpiCollectives> meeting,
            RunOn run_on,
            std::int64_t piece_bytes)
        : meeting_{std::move(meeting)},
          channel_{std::move(channel)},
          group_size_{group_size},
          piece_bytes_{piece_bytes},
          thread_{run_on} {
        channel_->joined([meeting = meeting_] {
            if (meeting->abandoned())
                throw CommError("a collective was abandoned", "this rank is ending");
        });
    }

    std::unique_ptr<Work> start_all_reduce_sum(const at::Tensor& tensor) {
        return start(tensor, [this, tensor](const NcclSpan& span) {
            if (group_size_ > 1)
                launch_nccl_reduce(*channel_, tensor);
            const at::Tensor host = to_host(tensor, span);
            meeting_->all_reduce_sum(host);
            tensor.copy_(host, /*non_blocking=*/true);
            if (group_size_ > 1)
                launch_nccl_broadcast(*channel_, tensor, 0);
        });
    }

    // `root_in_group` is the root's rank in this group, or negative; `meeting_root` that of its
    // speaker.
    std::unique_ptr<Work> start_broadcast(const at::Tensor& tensor,
                                          int root_in_group,
                                          int meeting_root) {
        return start(tensor, [this, tensor, root_in_group, meeting_root](const NcclSpan& span) {
            if (group_size_ > 1 && root_in_group >= 0)
                launch_nccl_broadcast(*channel_, tensor, root_in_group);
            for (const at::Tensor& piece : pieces_of(tensor, piece_bytes_)) {
                const at::Tensor host = to_host(piece, span);
                meeting_->broadcast(host, meeting_root);
                piece.copy_(host, /*non_blocking=*/true);
            }
            if (group_size_ > 1 && root_in_group < 0)
                launch_nccl_broadcast(*channel_, tensor, 0);
        });
    }

    void abandon() noexcept { meeting_->abandon(); }

private:
    class StagedWork;

    std::unique_ptr<Work> start(const at::Tensor& tensor,
                                std::function<void(const NcclSpan&)> steps);

    // While the thread may be at work: it uses nothing of the channel but its events.
    CudaEvents::Lent record_current(at::Device device) {
        return channel_->events().record(current_stream(device));
    }

    // In pinned memory that the next collective uses again, when the copies of this one are done.
    at::Tensor to_host(const at::Tensor& tensor, const NcclSpan& span) {
        const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
        if (!host_.defined() || host_.numel() < bytes)
            host_ = at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(true));
        const at::Tensor host =
            host_.narrow(0, 0, bytes).view(tensor.scalar_type()).view(tensor.sizes());
        host.copy_(tensor, /*non_blocking=*/true);
        const CudaEvents::Lent copied = channel_->events().record(channel_->stream().stream());
        channel_->wait_for(span.ready.get(), copied.get());
        return host;
    }

    std::shared_ptr<MpiCollectives> meeting_;
    std::shared_ptr<NcclChannel> channel_;
    int group_size_;
    std::int64_t piece_bytes_;  // of a broadcast, in host memory
    at::Tensor host_;
    std::mutex mutex_;         // of the channel, but for its events
    CollectiveThread thread_;  // last: ends before what it uses
};

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

class MixedGpuCommunicator final : public Communicator {
public:
    MixedGpuCommunicator(MixedPlace place,
                         at::Device device,
                         std::shared_ptr<NcclChannel> channel,
                         std::shared_ptr<Speaker> speaker)
        : place_{std::move(place)},
          device_{device},
          channel_{std::move(channel)},
          speaker_{std::move(speaker)} {}

    // While an exception unwinds, the other ranks may not take part any more.
    ~MixedGpuCommunicator() override {
        if (speaker_ != nullptr && std::uncaught_exceptions() > 0)
            speaker_->abandon();
    }
    MixedGpuCommunicator(const MixedGpuCommunicator&) = delete;
    MixedGpuCommunicator& operator=(const MixedGpuCommunicator&) = delete;

    int rank() const noexcept override { return place_.rank; }
    int size() const noexcept override { return place_.size; }
    at::Device device() const noexcept override { return device_; }

    std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override {
        check(tensor);
        return speaker_ != nullptr ? speaker_->start_all_reduce_sum(tensor)
                                   : nccl_reduce_and_broadcast(channel_, tensor);
    }

    void broadcast(at::Tensor tensor, int root) override {
        check(tensor);
        const std::vector<int>& group = *place_.groups.group_of(rank());
        const auto found = std::find(group.begin(), group.end(), root);
        const int root_in_group =
            found == group.end() ? -1 : static_cast<int>(found - group.begin());
        const auto work = speaker_ != nullptr
                              ? speaker_->start_broadcast(
                                    tensor, root_in_group, place_.groups.meeting_rank_of(root))
                              : nccl_broadcast(channel_, tensor, std::max(root_in_group, 0));
        work->wait();
    }

private:
    void check(const at::Tensor& tensor) const {
        HETSEQ_ASSERT(tensor.device() == device_ && tensor.is_contiguous());
    }

    MixedPlace place_;
    at::Device device_;
    std::shared_ptr<NcclChannel> channel_;
    std::shared_ptr<Speaker> speaker_;  // null on a rank that is not its group's first
};

}  // namespace

std::unique_ptr<Communicator> join_mixed_gpus(const MixedPlace& place,
                                              const HostComm& group,
                                              at::Device device,
                                              std::shared_ptr<MpiCollectives> meeting,
                                              ThreadSupport threads,
                                              const CommunicatorOptions& options) {
    auto channel =
        join_nccl(group, device, options, [&](const auto& joined, const at::Tensor& tensor) {
            if (group.size() > 1)
                nccl_reduce_and_broadcast(joined, tensor)->wait();
        });
    if (channel == nullptr)
        return nullptr;
    std::shared_ptr<Speaker> speaker;
    if (meeting != nullptr)
        speaker = std::make_shared<Speaker>(
            channel,
            group.size(),
            std::move(meeting),
            threads == ThreadSupport::multiple ? RunOn::own_thread : RunOn::caller,
            options.largest_bytes);
    return std::make_unique<MixedGpuCommunicator>(
        place, device, std::move(channel), std::move(speaker));
}

}  // namespace hetseq
