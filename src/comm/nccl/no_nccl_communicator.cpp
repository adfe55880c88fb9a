#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"

#include "comm/communicators.hpp"

namespace hetseq {

namespace {

[[noreturn]] void refuse(at::Device device) {
    throw DeviceError("there is no communicator for " + device.str(),
                      "this hetseq was built without CUDA",
                      "build with cmake --preset cuda, or give --device cpu");
}

}  // namespace

RankDevice nccl_device(at::Device device) {
    refuse(device);
}

std::unique_ptr<Communicator> make_nccl_communicator(const HostComm&,
                                                     at::Device device,
                                                     const CommunicatorOptions&) {
    refuse(device);
}

}  // namespace hetseq
