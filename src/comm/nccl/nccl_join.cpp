#include "nccl_join.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mailbox.hpp"

#include "nccl_try.hpp"

namespace hetseq {

namespace {

// It ends a rank's start because another rank's has failed.
struct OtherRankFailed {};

// Collective.
ncclUniqueId share_id(const HostComm& group) {
    ncclUniqueId id{};
    std::exception_ptr failure;
    std::string bytes;
    if (group.rank() == 0) {
        try {
            NCCL_TRY(ncclGetUniqueId(&id));
            bytes.assign(id.internal, sizeof id.internal);
        } catch (...) {
            failure = std::current_exception();
        }
    }
    bytes = group.broadcast(bytes, 0);
    if (failure)
        std::rethrow_exception(failure);
    if (bytes.empty())
        throw OtherRankFailed{};
    std::copy(bytes.begin(), bytes.end(), id.internal);
    return id;
}

std::shared_ptr<NcclChannel> start(const HostComm& group,
                                   at::Device device,
                                   const ncclUniqueId& id,
                                   NcclChannel::Options waits,
                                   std::int64_t largest_bytes,
                                   const NcclWarmUp& warm_up) {
    const c10::cuda::CUDAGuard guard{device};
    auto channel = std::make_shared<NcclChannel>(
        id, group.rank(), group.size(), device.index(), std::move(waits));
    for (const std::int64_t bytes : {std::int64_t{sizeof(double)}, largest_bytes}) {
        const std::int64_t count = std::max<std::int64_t>(bytes / std::int64_t{sizeof(float)}, 1);
        warm_up(channel, at::zeros({count}, at::TensorOptions(at::kFloat).device(device)));
    }
    channel->joined();
    return channel;
}

}  // namespace

std::shared_ptr<NcclChannel> join_nccl(const HostComm& group,
                                       at::Device device,
                                       const CommunicatorOptions& options,
                                       const NcclWarmUp& warm_up) {
    Mailbox mailbox(group);
    const auto hear_of_failures = [&mailbox] {
        if (mailbox.receive())
            throw OtherRankFailed{};
    };
    try {
        const ncclUniqueId id = share_id(group);
        try {
            return start(group,
                         device,
                         id,
                         {.deadline = options.deadline,
                          .join_deadline = options.join_deadline,
                          .while_waiting = hear_of_failures},
                         options.largest_bytes,
                         warm_up);
        } catch (const OtherRankFailed&) {
            throw;
        } catch (...) {
            for (int rank = 0; rank < group.size(); ++rank)
                if (rank != group.rank())
                    mailbox.send(rank, {});
            throw;
        }
    } catch (const OtherRankFailed&) {
        return nullptr;
    }
}

}  // namespace hetseq
