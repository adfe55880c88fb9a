#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/util/owned_range.hpp"
#include "hetseq/comm/communicator.hpp"

#include "comm/mixed/group_ranges.hpp"
#include "comm/mpi/collective_thread.hpp"
#include "comm/mpi/mpi_collectives.hpp"
#include "comm/nccl/nccl_work.hpp"

namespace hetseq {

/// The first rank of a group of GPUs: meets the others over MPI, through pinned memory of the host.
/// Its thread drives MPI and, in between, NCCL: the group's other ranks ask NCCL for the same in
/// the same order, and wait for it on their streams alone.
class Speaker : public std::enable_shared_from_this<Speaker> {
public:
    /// `piece_bytes`: of a broadcast, in host memory.
    Speaker(std::shared_ptr<NcclChannel> channel,
            std::shared_ptr<MpiCollectives> meeting,
            RunOn run_on,
            std::int64_t piece_bytes);

    std::unique_ptr<Work> start_all_reduce_sum(const at::Tensor& tensor);
    /// `met`: the ranges as those who meet own them; `passed`: as the group passes them on.
    std::unique_ptr<Work> start_reduce_scatter_sum(const at::Tensor& tensor,
                                                   std::vector<OwnedRange> met,
                                                   GroupRanges passed);
    std::unique_ptr<Work> start_all_gather(const at::Tensor& tensor,
                                           std::vector<OwnedRange> met,
                                           GroupRanges passed);
    /// `root_in_group` is the root's rank in this group, or negative; `meeting_root` that of its
    /// speaker.
    std::unique_ptr<Work> start_broadcast(const at::Tensor& tensor,
                                          int root_in_group,
                                          int meeting_root);

    void abandon() noexcept { meeting_->abandon(); }

private:
    class StagedWork;

    std::unique_ptr<Work> start(const at::Tensor& tensor,
                                std::function<void(const NcclSpan&)> steps);
    bool has_members() const noexcept { return channel_->size() > 1; }
    bool is_own(const OwnedRange& met) const noexcept { return met.owner == meeting_->rank(); }
    CudaEvents::Lent record_current(at::Device device);
    at::Tensor host_memory(const at::Tensor& tensor);
    void wait_for_copies(const NcclSpan& span);
    at::Tensor to_host(const at::Tensor& tensor, const NcclSpan& span);

    std::shared_ptr<MpiCollectives> meeting_;
    std::shared_ptr<NcclChannel> channel_;
    std::int64_t piece_bytes_;
    at::Tensor host_;
    std::mutex mutex_;         // of the channel, but for its events
    CollectiveThread thread_;  // last: ends before what it uses
};

}  // namespace hetseq
