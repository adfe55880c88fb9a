#pragma once

#include <memory>

#include "hetseq/comm/communicator.hpp"

namespace hetseq {

/// Collective. Tensors on `device`, summed by NCCL on a stream of their own. Throws DeviceError in
/// a build without CUDA and where two ranks use one GPU, CommError where the ranks' NCCL versions
/// differ.
std::unique_ptr<Communicator> make_nccl_communicator(const HostComm& world,
                                                     at::Device device,
                                                     const CommunicatorOptions& options);

}  // namespace hetseq
