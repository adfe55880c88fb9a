#include "hetseq/util/error.hpp"
#include "hetseq/data/loading/device_transfer.hpp"

namespace hetseq {

std::shared_ptr<DeviceTransfer> make_cuda_transfer(at::Device device) {
    throw DeviceError("no data can be brought to " + device.str(),
                      "this build has no CUDA",
                      "use --device cpu or a build with the cuda preset");
}

}  // namespace hetseq
