#include "hetseq/data/loading/device_transfer.hpp"

namespace hetseq {

namespace {

class HostTransfer final : public DeviceTransfer {
public:
    std::unique_ptr<Arrival> send(std::vector<MicroBatch>& /*batches*/) override { return nullptr; }
    MicroBatch bring(const MicroBatch& batch) override { return batch; }
};

}  // namespace

std::shared_ptr<DeviceTransfer> make_host_transfer() {
    return std::make_shared<HostTransfer>();
}

std::shared_ptr<DeviceTransfer> make_device_transfer(at::Device device) {
    return device.is_cuda() ? make_cuda_transfer(device) : make_host_transfer();
}

}  // namespace hetseq
