#include <map>
#include <span>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "hetseq/util/error.hpp"

#include "comm/communicators.hpp"
#include "comm/host/cuda_devices.hpp"
#include "comm/host/rank_ranges.hpp"

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "nccl_channel.hpp"
#include "nccl_try.hpp"
#include "nccl_version.hpp"

namespace hetseq {

namespace {

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
            throw InternalError(std::string("there is no all-reduce of ") + at::toString(type));
    }
}

CudaEvent record(cudaStream_t stream) {
    cudaEvent_t event = nullptr;
    CUDA_TRY(cudaEventCreate(&event));
    CudaEvent owner{event};
    CUDA_TRY(cudaEventRecord(event, stream));
    return owner;
}

class NcclWork final : public Work {
public:
    NcclWork(std::shared_ptr<NcclChannel> channel,
             at::Tensor tensor,
             CudaEvent start,
             CudaEvent end)
        : channel_{std::move(channel)},
          tensor_{std::move(tensor)},
          start_{std::move(start)},
          end_{std::move(end)} {}

    void wait() override {
        channel_->wait_for(end_.get());
        const auto current = c10::cuda::getCurrentCUDAStream(tensor_.device().index());
        CUDA_TRY(cudaStreamWaitEvent(current.stream(), end_.get(), 0));
    }
    bool done() override { return channel_->passed(end_.get()); }
    double own_ms() override {
        float ms = 0;
        CUDA_TRY(cudaEventElapsedTime(&ms, start_.get(), end_.get()));
        return ms;
    }

private:
    std::shared_ptr<NcclChannel> channel_;
    at::Tensor tensor_;
    CudaEvent start_;
    CudaEvent end_;
};

class NcclCommunicator final : public Communicator {
public:
    NcclCommunicator(std::shared_ptr<NcclChannel> channel, at::Device device, int rank, int size)
        : channel_{std::move(channel)}, device_{device}, rank_{rank}, size_{size} {}

    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return size_; }
    at::Device device() const noexcept override { return device_; }

    std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override {
        HETSEQ_ASSERT(tensor.is_floating_point());
        const ncclDataType_t type = nccl_type(tensor.scalar_type());
        return start(tensor, [&](cudaStream_t stream) {
            void* values = tensor.mutable_data_ptr();
            NCCL_TRY(ncclAllReduce(values,
                                   values,
                                   static_cast<std::size_t>(tensor.numel()),
                                   type,
                                   ncclSum,
                                   channel_->comm(),
                                   stream));
        });
    }

    void broadcast(at::Tensor tensor, int root) override {
        const auto work = start(tensor, [&](cudaStream_t stream) {
            void* bytes = tensor.mutable_data_ptr();
            NCCL_TRY(ncclBroadcast(
                bytes, bytes, tensor.nbytes(), ncclUint8, root, channel_->comm(), stream));
        });
        work->wait();
    }

private:
    // Runs `collective` on the channel's stream, after everything that the current stream was
    // given.
    template <class Collective>
    std::unique_ptr<Work> start(const at::Tensor& tensor, Collective&& collective) {
        HETSEQ_ASSERT(tensor.device() == device_ && tensor.is_contiguous());
        channel_->check();
        const c10::cuda::CUDAGuard guard{device_};
        const cudaStream_t stream = channel_->stream();
        const CudaEvent ready = record(c10::cuda::getCurrentCUDAStream(device_.index()).stream());
        CUDA_TRY(cudaStreamWaitEvent(stream, ready.get(), 0));

        CudaEvent begin = record(stream);
        collective(stream);
        channel_->wait_for_launch();  // or `end` could be recorded ahead of the kernel
        CudaEvent end = record(stream);
        // Keeps the allocator from handing the memory to others while this stream uses it.
        c10::cuda::CUDACachingAllocator::recordStream(
            tensor.storage().data_ptr(), c10::cuda::getStreamFromExternal(stream, device_.index()));
        return std::make_unique<NcclWork>(channel_, tensor, std::move(begin), std::move(end));
    }

    std::shared_ptr<NcclChannel> channel_;
    at::Device device_;
    int rank_;
    int size_;
};

// Collective. Unlike versions do not fail: they hang or give wrong sums.
void check_versions(const HostComm& world) {
    int mine = 0;
    NCCL_TRY(ncclGetVersion(&mine));
    std::map<std::int64_t, std::vector<int>> ranks_of;
    int rank = 0;
    for (const std::int64_t version : world.all_gather(std::int64_t{mine}))
        ranks_of[version].push_back(rank++);
    if (ranks_of.size() == 1)
        return;
    std::string list;
    for (const auto& [version, ranks] : ranks_of)
        list += (list.empty() ? "" : ", ") + format_nccl_version(static_cast<int>(version)) +
                " on " + name_ranks(ranks);
    throw CommError("the ranks load different NCCL versions",
                    list,
                    "install one LibTorch on all hosts, and look for another NCCL in "
                    "LD_LIBRARY_PATH");
}

// Collective.
void check_devices(const HostComm& world, at::Device device) {
    const auto uuid = agree_on(world, [&] {
        const auto visible = visible_cuda_devices();
        const auto index = static_cast<std::size_t>(device.index());
        if (index >= visible.devices.size())
            throw DeviceError(
                "there is no " + device.str(), visible.why_none, "see nvidia-smi --list-gpus");
        return visible.devices[index].uuid;
    });
    std::map<std::string, std::vector<int>> ranks_of;
    int rank = 0;
    for (const std::string& each : world.all_gather(uuid))
        ranks_of[each].push_back(rank++);
    for (const auto& [each, ranks] : ranks_of)
        if (ranks.size() > 1)
            throw DeviceError(name_ranks(ranks) + " share one GPU",
                              each,
                              "NCCL needs one for each rank: start fewer ranks on its host");
}

// Collective.
ncclUniqueId share_id(const HostComm& world) {
    ncclUniqueId id{};
    agree_on(world, [&] {
        if (world.rank() == 0)
            NCCL_TRY(ncclGetUniqueId(&id));
    });
    world.broadcast(std::as_writable_bytes(std::span{&id, 1}), 0);
    return id;
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(const HostComm& world,
                                                     at::Device device,
                                                     const CommunicatorOptions& options) {
    check_versions(world);
    check_devices(world, device);
    const ncclUniqueId id = share_id(world);
    auto channel = agree_on(world, [&] {
        const c10::cuda::CUDAGuard guard{device};
        return std::make_shared<NcclChannel>(id, world.rank(), world.size(), options.deadline);
    });
    return std::make_unique<NcclCommunicator>(
        std::move(channel), device, world.rank(), world.size());
}

}  // namespace hetseq
