#include "nccl_work.hpp"

#include <string>
#include <utility>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "hetseq/util/error.hpp"

#include "comm/host/cuda_try.hpp"
#include "nccl_try.hpp"

namespace hetseq {

namespace {

constexpr int first = 0;  // rank

class NcclWork final : public Work {
public:
    NcclWork(std::shared_ptr<NcclChannel> channel, at::Tensor tensor, NcclSpan span)
        : channel_{std::move(channel)}, tensor_{std::move(tensor)}, span_{std::move(span)} {}

    void wait() override {
        channel_->wait_for(span_.ready.get(), span_.end.get());
        channel_->guarded([&] { let_current_stream_wait(tensor_.device(), span_.end.get()); });
    }
    void wait_then(const std::function<void()>& then,
                   const std::function<void()>& meanwhile) override {
        channel_->guarded([&] { let_current_stream_wait(tensor_.device(), span_.end.get()); });
        then();
        const CudaEvents::Lent all = record_ready(*channel_, tensor_.device());
        meanwhile();
        channel_->wait_for(span_.ready.get(), span_.end.get());
        channel_->wait_for_own(all.get());
    }
    bool done() override { return channel_->passed(span_.end.get()); }
    double own_ms() override { return span_.ms(); }

private:
    std::shared_ptr<NcclChannel> channel_;  // whose events these are
    at::Tensor tensor_;
    NcclSpan span_;
};

}  // namespace

double NcclSpan::ms() const {
    float ms = 0;
    CUDA_TRY(cudaEventElapsedTime(&ms, begin.get(), end.get()));
    return ms;
}

cudaStream_t current_stream(at::Device device) {
    return c10::cuda::getCurrentCUDAStream(device.index()).stream();
}

CudaEvents::Lent record_ready(NcclChannel& channel, at::Device device) {
    CudaEvents::Lent ready;
    channel.guarded([&] { ready = channel.events().record(current_stream(device)); });
    return ready;
}

void let_current_stream_wait(at::Device device, cudaEvent_t event) {
    CUDA_TRY(cudaStreamWaitEvent(current_stream(device), event, 0));
}

void keep_for(const NcclChannel& channel, const at::Tensor& tensor) {
    c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), channel.stream());
}

ncclDataType_t nccl_type(at::ScalarType type) {
    switch (type) {
        case at::kFloat:
            return ncclFloat32;
        case at::kDouble:
            return ncclFloat64;
        case at::kHalf:
            return ncclFloat16;
        case at::kBFloat16:
            return ncclBfloat16;
        default:
            throw InternalError(std::string("NCCL sums no values of ") + at::toString(type));
    }
}

std::unique_ptr<Work> nccl_work(const std::shared_ptr<NcclChannel>& channel,
                                const at::Tensor& tensor,
                                const std::function<void()>& launch) {
    const c10::cuda::CUDAGuard guard{tensor.device()};
    cudaStream_t stream = channel->stream().stream();
    NcclSpan span;
    span.ready = record_ready(*channel, tensor.device());
    channel->guarded([&] {
        CUDA_TRY(cudaStreamWaitEvent(stream, span.ready.get(), 0));
        span.begin = channel->timed_events().record(stream);
    });
    // Before the launch: one that fails may have put its kernel into the stream.
    keep_for(*channel, tensor);
    // Returns when NCCL has launched it, or `end` could be recorded ahead of the kernel.
    launch();
    channel->guarded([&] { span.end = channel->timed_events().record(stream); });
    return std::make_unique<NcclWork>(channel, tensor, std::move(span));
}

std::unique_ptr<Work> nccl_all_reduce_sum(const std::shared_ptr<NcclChannel>& channel,
                                          const at::Tensor& tensor) {
    const ncclDataType_t type = nccl_type(tensor.scalar_type());
    return nccl_work(channel, tensor, [&] {
        channel->launch([&](ncclComm_t comm) {
            void* values = tensor.mutable_data_ptr();
            NCCL_TRY(ncclAllReduce(values,
                                   values,
                                   static_cast<std::size_t>(tensor.numel()),
                                   type,
                                   ncclSum,
                                   comm,
                                   channel->stream().stream()));
        });
    });
}

std::unique_ptr<Work> nccl_broadcast(const std::shared_ptr<NcclChannel>& channel,
                                     const at::Tensor& tensor,
                                     int root) {
    return nccl_work(channel, tensor, [&] { launch_nccl_broadcast(*channel, tensor, root); });
}

std::unique_ptr<Work> nccl_reduce_and_broadcast(const std::shared_ptr<NcclChannel>& channel,
                                                const at::Tensor& tensor) {
    return nccl_work(channel, tensor, [&] {
        launch_nccl_reduce(*channel, tensor);
        launch_nccl_broadcast(*channel, tensor, first);
    });
}

void launch_nccl_reduce(NcclChannel& channel, const at::Tensor& tensor) {
    const ncclDataType_t type = nccl_type(tensor.scalar_type());
    channel.launch([&](ncclComm_t comm) {
        void* values = tensor.mutable_data_ptr();
        NCCL_TRY(ncclReduce(values,
                            values,
                            static_cast<std::size_t>(tensor.numel()),
                            type,
                            ncclSum,
                            first,
                            comm,
                            channel.stream().stream()));
    });
}

void launch_nccl_broadcast(NcclChannel& channel, const at::Tensor& tensor, int root) {
    channel.launch([&](ncclComm_t comm) {
        void* bytes = tensor.mutable_data_ptr();
        NCCL_TRY(ncclBroadcast(
            bytes, bytes, tensor.nbytes(), ncclUint8, root, comm, channel.stream().stream()));
    });
}

}  // namespace hetseq
