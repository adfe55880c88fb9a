#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <c10/core/Device.h>

#include "hetseq/comm/communicator.hpp"

#include "nccl_channel.hpp"

namespace hetseq {

/// Asks NCCL for each kind of collective on `tensor`, once with few values and once with many.
using NcclWarmUp = std::function<void(const std::shared_ptr<NcclChannel>&, const at::Tensor&)>;

/// Collective over `group`, which NCCL joins: its start, and `warm_up`, because NCCL connects, and
/// takes memory for it, at the first collective of each kind and size; later the memory may be
/// full. Null on a rank whose start ends because another rank's has failed. That one throws, so the
/// callers agree afterwards.
std::shared_ptr<NcclChannel> join_nccl(const HostComm& group,
                                       at::Device device,
                                       const CommunicatorOptions& options,
                                       const NcclWarmUp& warm_up);

}  // namespace hetseq
