#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "hetseq/util/error.hpp"

#include "comm/communicators.hpp"
#include "comm/host/cuda_devices.hpp"
#include "comm/host/cuda_try.hpp"
#include "comm/host/rank_ranges.hpp"

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mailbox.hpp"

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

// The events around a collective.
struct Span {
    CudaEvents::Lent ready;  // on the current stream: what the collective waits for
    CudaEvents::Lent begin;
    CudaEvents::Lent end;
};

class NcclWork final : public Work {
public:
    NcclWork(std::shared_ptr<NcclChannel> channel, at::Tensor tensor, Span span)
        : channel_{std::move(channel)}, tensor_{std::move(tensor)}, span_{std::move(span)} {}

    void wait() override {
        channel_->wait_for(span_.ready.get(), span_.end.get());
        const auto current = c10::cuda::getCurrentCUDAStream(tensor_.device().index());
        CUDA_TRY(cudaStreamWaitEvent(current.stream(), span_.end.get(), 0));
    }
    void wait_then(const std::function<void()>& then) override {
        const auto current = c10::cuda::getCurrentCUDAStream(tensor_.device().index());
        channel_->guarded(
            [&] { CUDA_TRY(cudaStreamWaitEvent(current.stream(), span_.end.get(), 0)); });
        then();
        CudaEvents::Lent all;
        channel_->guarded([&] { all = channel_->events().record(current.stream()); });
        channel_->wait_for(span_.ready.get(), all.get());
    }
    bool done() override { return channel_->passed(span_.end.get()); }
    double own_ms() override {
        float ms = 0;
        CUDA_TRY(cudaEventElapsedTime(&ms, span_.begin.get(), span_.end.get()));
        return ms;
    }

private:
    std::shared_ptr<NcclChannel> channel_;  // whose events these are
    at::Tensor tensor_;
    Span span_;
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
        return start(tensor, [&](ncclComm_t comm, cudaStream_t stream) {
            void* values = tensor.mutable_data_ptr();
            NCCL_TRY(ncclAllReduce(values,
                                   values,
                                   static_cast<std::size_t>(tensor.numel()),
                                   type,
                                   ncclSum,
                                   comm,
                                   stream));
        });
    }

    void broadcast(at::Tensor tensor, int root) override {
        const auto work = start(tensor, [&](ncclComm_t comm, cudaStream_t stream) {
            void* bytes = tensor.mutable_data_ptr();
            NCCL_TRY(ncclBroadcast(bytes, bytes, tensor.nbytes(), ncclUint8, root, comm, stream));
        });
        work->wait();
    }

    // NCCL connects, and takes memory for it, at the first collective of each kind and size; later
    // the memory may be full.
    void warm_up(std::int64_t largest_bytes) {
        for (const std::int64_t bytes : {std::int64_t{sizeof(double)}, largest_bytes}) {
            const at::Tensor tensor =
                at::zeros({std::max<std::int64_t>(bytes / std::int64_t{sizeof(float)}, 1)},
                          at::TensorOptions(at::kFloat).device(device_));
            all_reduce_sum(tensor);
            broadcast(tensor, 0);
        }
    }

private:
    // Runs `collective` on the channel's stream, after everything that the current stream was
    // given.
    template <class Collective>
    std::unique_ptr<Work> start(const at::Tensor& tensor, Collective&& collective) {
        HETSEQ_ASSERT(tensor.device() == device_ && tensor.is_contiguous());
        const c10::cuda::CUDAGuard guard{device_};
        const c10::cuda::CUDAStream& stream = channel_->stream();
        Span span;
        channel_->guarded([&] {
            span.ready = channel_->events().record(
                c10::cuda::getCurrentCUDAStream(device_.index()).stream());
            CUDA_TRY(cudaStreamWaitEvent(stream.stream(), span.ready.get(), 0));
            span.begin = channel_->timed_events().record(stream.stream());
        });
        // Returns when NCCL has launched it, or `end` could be recorded ahead of the kernel.
        channel_->launch([&](ncclComm_t comm) { collective(comm, stream.stream()); });
        channel_->guarded([&] { span.end = channel_->timed_events().record(stream.stream()); });
        // Keeps the allocator from handing the memory to others while this stream uses it.
        c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream);
        return std::make_unique<NcclWork>(channel_, tensor, std::move(span));
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

// What ends a rank's start because another rank's has failed; that one reports it.
struct OtherRankFailed {};

// Collective, but for what it does over MPI.
std::unique_ptr<NcclCommunicator> join(const HostComm& world,
                                       at::Device device,
                                       const ncclUniqueId& id,
                                       std::int64_t largest_bytes,
                                       NcclChannel::Options options) {
    const c10::cuda::CUDAGuard guard{device};
    auto channel = std::make_shared<NcclChannel>(
        id, world.rank(), world.size(), device.index(), std::move(options));
    auto communicator =
        std::make_unique<NcclCommunicator>(channel, device, world.rank(), world.size());
    communicator->warm_up(largest_bytes);
    channel->joined();
    return communicator;
}

// Collective. A rank that fails tells the others, which wait for it inside NCCL.
std::unique_ptr<NcclCommunicator> join_together(const HostComm& world,
                                                at::Device device,
                                                const CommunicatorOptions& options) {
    const ncclUniqueId id = share_id(world);
    Mailbox mailbox(world);
    const NcclChannel::Options waits{
        .deadline = options.deadline, .join_deadline = options.join_deadline, .while_joining = [&] {
            if (mailbox.receive())
                throw OtherRankFailed{};
        }};
    auto communicator = agree_on(world, [&]() -> std::unique_ptr<NcclCommunicator> {
        try {
            return join(world, device, id, options.largest_bytes, waits);
        } catch (const OtherRankFailed&) {
            return nullptr;
        } catch (...) {
            for (int rank = 0; rank < world.size(); ++rank)
                if (rank != world.rank())
                    mailbox.send(rank, {});
            throw;
        }
    });
    HETSEQ_ASSERT(communicator != nullptr);
    return communicator;
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(const HostComm& world,
                                                     at::Device device,
                                                     const CommunicatorOptions& options) {
    check_versions(world);
    check_devices(world, device);
    return join_together(world, device, options);
}

}  // namespace hetseq
