#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/util/owned_range.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "all_reduce.hpp"
#include "comm/mpi/hierarchical/hierarchical_reduce.hpp"
#include "host_map.hpp"
#include "progress.hpp"

namespace hetseq {

/// Collectives over tensors in host memory, each run to its end by the thread that calls it: one at
/// a time, in the same order on all ranks. They throw CommError when a peer is lost, the deadline
/// passes, or `abandon` was called. After a failure MPI may still write to the tensor, which is
/// therefore never freed.
class MpiCollectives {
public:
    /// Collective. `job_ranks`: what messages call the ranks of `world`; empty: as it does.
    MpiCollectives(const HostComm& world,
                   std::chrono::seconds deadline,
                   const std::vector<int>& job_ranks = {});
    MpiCollectives(const MpiCollectives&) = delete;
    MpiCollectives& operator=(const MpiCollectives&) = delete;

    int rank() const noexcept { return comm_.rank(); }
    int size() const noexcept { return comm_.size(); }

    /// Sums `tensor` over all ranks, in place; it is contiguous and floating point. The result has
    /// the same bits on all ranks.
    void all_reduce_sum(const at::Tensor& tensor);
    /// As `Communicator` has them (hetseq/comm/communicator.hpp).
    void reduce_scatter_sum(const at::Tensor& tensor, const std::vector<OwnedRange>& ranges);
    void all_gather(const at::Tensor& tensor, const std::vector<OwnedRange>& ranges);
    /// Copies the `tensor` of `root`, which is contiguous, to all ranks.
    void broadcast(const at::Tensor& tensor, int root);

    /// From any thread: the one in flight and every later one ends by CommError.
    void abandon() noexcept { abandoned_ = true; }
    bool abandoned() const noexcept { return abandoned_; }

private:
    void guarded(const char* fault,
                 const at::Tensor& tensor,
                 const std::function<void(Progress&)>& collective);
    void sum(const at::Tensor& tensor, Progress& progress);
    void sum_ranges(const at::Tensor& tensor,
                    const std::vector<OwnedRange>& ranges,
                    Progress& progress);
    void gather_ranges(const at::Tensor& tensor,
                       const std::vector<OwnedRange>& ranges,
                       Progress& progress);
    HierarchicalRun hierarchical(Progress& progress);
    void send_all(const at::Tensor& tensor, int root, Progress& progress);

    HostComm comm_;
    HostMap hosts_;
    std::size_t message_bytes_;
    std::chrono::seconds deadline_;
    std::string others_;  // that this rank waits for
    using AllScratch = std::array<Scratch, pieces_in_flight>;
    std::unique_ptr<AllScratch> scratch_ = std::make_unique<AllScratch>();
    std::atomic<bool> abandoned_ = false;
};

}  // namespace hetseq
