#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "comm/communicators.hpp"
#include "comm/host/cuda_devices.hpp"
#include "nccl_join.hpp"
#include "nccl_ranges.hpp"
#include "nccl_try.hpp"
#include "nccl_version.hpp"
#include "nccl_work.hpp"

namespace hetseq {

namespace {

class NcclCommunicator final : public Communicator {
public:
    NcclCommunicator(std::shared_ptr<NcclChannel> channel, at::Device device, int rank, int size)
        : channel_{std::move(channel)}, device_{device}, rank_{rank}, size_{size} {}

    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return size_; }
    at::Device device() const noexcept override { return device_; }

    std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override {
        check(tensor);
        return nccl_all_reduce_sum(channel_, tensor);
    }
    std::unique_ptr<Work> start_reduce_scatter_sum(at::Tensor tensor,
                                                   std::vector<OwnedRange> ranges) override {
        check(tensor);
        return nccl_work(
            channel_, tensor, [&] { launch_nccl_reduce_scatter(*channel_, tensor, ranges); });
    }
    std::unique_ptr<Work> start_all_gather(at::Tensor tensor,
                                           std::vector<OwnedRange> ranges) override {
        check(tensor);
        return nccl_work(
            channel_, tensor, [&] { launch_nccl_all_gather(*channel_, tensor, ranges); });
    }
    void broadcast(at::Tensor tensor, int root) override {
        check(tensor);
        nccl_broadcast(channel_, tensor, root)->wait();
    }

private:
    void check(const at::Tensor& tensor) const {
        HETSEQ_ASSERT(tensor.device() == device_ && tensor.is_contiguous());
    }

    std::shared_ptr<NcclChannel> channel_;
    at::Device device_;
    int rank_;
    int size_;
};

void warm_up(const std::shared_ptr<NcclChannel>& channel, const at::Tensor& tensor) {
    nccl_all_reduce_sum(channel, tensor)->wait();
    nccl_broadcast(channel, tensor, 0)->wait();
}

}  // namespace

RankDevice nccl_device(at::Device device) {
    const auto visible = visible_cuda_devices();
    const auto index = static_cast<std::size_t>(device.index());
    if (index >= visible.devices.size())
        throw DeviceError(
            "there is no " + device.str(), visible.why_none, "see nvidia-smi --list-gpus");
    int version = 0;
    NCCL_TRY(ncclGetVersion(&version));
    return {visible.devices[index].gpu, format_nccl_version(version)};
}

std::unique_ptr<Communicator> make_nccl_communicator(const HostComm& world,
                                                     at::Device device,
                                                     const CommunicatorOptions& options) {
    auto channel = agree_on(world, [&] { return join_nccl(world, device, options, warm_up); });
    HETSEQ_ASSERT(channel != nullptr);
    return std::make_unique<NcclCommunicator>(
        std::move(channel), device, world.rank(), world.size());
}

}  // namespace hetseq
