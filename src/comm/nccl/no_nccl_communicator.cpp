#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"

#include "comm/communicators.hpp"

namespace hetseq {

std::unique_ptr<Communicator> make_nccl_communicator(const HostComm&,
                                                     at::Device device,
                                                     const CommunicatorOptions&) {
    throw DeviceError("there is no communicator for " + device.str(),
                      "this hetseq was built without CUDA",
                      "build with cmake --preset cuda, or give --device cpu");
}

}  // namespace hetseq
