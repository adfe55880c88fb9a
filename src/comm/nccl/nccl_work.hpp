#pragma once

#include <functional>
#include <memory>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <ATen/core/Tensor.h>

#include "hetseq/comm/communicator.hpp"

#include "cuda_events.hpp"
#include "nccl_channel.hpp"

namespace hetseq {

/// The events around a collective.
struct NcclSpan {
    CudaEvents::Lent ready;  // on the current stream: what the collective waits for
    CudaEvents::Lent begin;  // on the channel's
    CudaEvents::Lent end;

    /// From `begin` to `end` [ms]; both have passed.
    double ms() const;
};

cudaStream_t current_stream(at::Device device);
/// An event on the current stream of `device`, now.
CudaEvents::Lent record_ready(NcclChannel& channel, at::Device device);
/// Makes the current stream of `device` wait for `event`.
void let_current_stream_wait(at::Device device, cudaEvent_t event);
/// Keeps the allocator from handing the memory of `tensor` to others while the channel's stream
/// uses it.
void keep_for(const NcclChannel& channel, const at::Tensor& tensor);

/// Of values that are summed: one of the types that gradients have.
ncclDataType_t nccl_type(at::ScalarType type);

/// The work that `launch()` asks NCCL for on the channel's stream, in place in `tensor`:
/// contiguous, on the device of `channel`. It is done after everything that the current stream was
/// given.
std::unique_ptr<Work> nccl_work(const std::shared_ptr<NcclChannel>& channel,
                                const at::Tensor& tensor,
                                const std::function<void()>& launch);

/// NCCL does this to `tensor`, as above. A sum is over all ranks.
std::unique_ptr<Work> nccl_all_reduce_sum(const std::shared_ptr<NcclChannel>& channel,
                                          const at::Tensor& tensor);
std::unique_ptr<Work> nccl_broadcast(const std::shared_ptr<NcclChannel>& channel,
                                     const at::Tensor& tensor,
                                     int root);
/// To rank 0, and back from it what it makes of the sum.
std::unique_ptr<Work> nccl_reduce_and_broadcast(const std::shared_ptr<NcclChannel>& channel,
                                                const at::Tensor& tensor);

/// The two halves of the last one, on rank 0, where the caller does the rest on the channel's
/// stream.
void launch_nccl_reduce(NcclChannel& channel, const at::Tensor& tensor);
void launch_nccl_broadcast(NcclChannel& channel, const at::Tensor& tensor, int root);

}  // namespace hetseq
