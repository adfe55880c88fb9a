#include "hetseq/util/error.hpp"

#include "comm/communicators.hpp"
#include "mixed_communicator.hpp"

namespace hetseq {

std::unique_ptr<Communicator> join_mixed_gpus(const MixedPlace&,
                                              const HostComm&,
                                              at::Device device,
                                              std::shared_ptr<MpiCollectives>,
                                              ThreadSupport,
                                              const CommunicatorOptions&) {
    nccl_device(device);  // says what is missing
    throw InternalError("a GPU of a build without CUDA");
}

}  // namespace hetseq
