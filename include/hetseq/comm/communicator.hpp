#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/util/owned_range.hpp"

namespace hetseq {

class HostComm;
class MpiEnvironment;

/// A tensor collective in flight; its tensor must not be touched until it is complete.
class Work {
public:
    virtual ~Work() = default;
    /// Waits until the caller (on a GPU: its current stream) may use the result. After the first
    /// moments it sleeps. Throws CommError when a peer is lost or the deadline passes; every later
    /// collective of the communicator then throws the same.
    virtual void wait() = 0;
    /// Like `wait`, and for what `then` asks of the device: the result is there for it. On a GPU
    /// the host calls both functions before it waits, only once, and not for what `meanwhile` asks
    /// of the device. That should be less work than the device's queue holds (some hundred
    /// kernels): a host that waits for a place in it looks for no errors and no deadline.
    virtual void wait_then(
        const std::function<void()>& then, const std::function<void()>& meanwhile = [] {}) {
        wait();
        then();
        meanwhile();
    }
    /// True once complete; never blocks.
    virtual bool done() = 0;
    /// The collective's own running time, from its start on this rank's transport to its end [ms];
    /// valid after it is complete (on a GPU: after the stream is synchronised). Time spent queued
    /// behind earlier collectives does not count.
    virtual double own_ms() = 0;
};

/// Tensor collectives over all ranks. Calls are made in the same order on all ranks, from one
/// thread; collectives run in that order, in the background. (Over MPI with less than
/// MPI_THREAD_MULTIPLE a collective runs to its end in the call that starts it.) Destruction
/// finishes what is in flight, but abandons it while an exception unwinds.
class Communicator {
public:
    virtual ~Communicator() = default;

    virtual int rank() const noexcept = 0;
    virtual int size() const noexcept = 0;
    virtual at::Device device() const noexcept = 0;

    /// Starts summing `tensor` over all ranks, in place. Collective; `tensor` is contiguous,
    /// floating point and on `device()`. The result has the same bits on all ranks.
    virtual std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) = 0;
    /// Starts summing `tensor` as above, but each rank gets the sums of its own ranges alone: what
    /// it does not own has no meaning afterwards. `ranges` cover the tensor in order, the same ones
    /// on all ranks; a rank may own none, or several. Over MPI on up to 64 ranks the sums have
    /// the bits of `start_all_reduce_sum`.
    virtual std::unique_ptr<Work> start_reduce_scatter_sum(at::Tensor tensor,
                                                           std::vector<OwnedRange> ranges) = 0;
    /// Starts copying what each rank owns of `tensor` to all ranks. Its type and `ranges` as above.
    virtual std::unique_ptr<Work> start_all_gather(at::Tensor tensor,
                                                   std::vector<OwnedRange> ranges) = 0;
    /// Copies the `tensor` of `root` to all ranks. Collective; blocks.
    virtual void broadcast(at::Tensor tensor, int root) = 0;

    void all_reduce_sum(at::Tensor tensor) { start_all_reduce_sum(std::move(tensor))->wait(); }
};

struct CommunicatorOptions {
    std::chrono::seconds deadline{1800};      // one collective may take no longer
    std::chrono::seconds join_deadline{300};  // nor may the start of NCCL on all ranks
    std::int64_t largest_bytes = 25 << 20;    // that a collective usually has; NCCL prepares for it
};

/// Collective. The communicator for `device`: NCCL among GPUs, MPI among CPUs. Where the ranks'
/// devices are unlike, or NCCL cannot join them (two ranks on one GPU, unlike versions), both: see
/// docs/mpi.md. It then says why, on rank 0.
std::unique_ptr<Communicator> make_communicator(const HostComm& world,
                                                const MpiEnvironment& environment,
                                                at::Device device,
                                                const CommunicatorOptions& options = {});

}  // namespace hetseq
