#pragma once

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/order/batch_plan.hpp"

namespace hetseq {

/// Collective. Throws the same AgreedError on all ranks, whose slices do not tile their batch. It
/// names the ranks whose slices do not meet.
[[noreturn]] void throw_cut_mismatch(const HostComm& comm,
                                     const GlobalBatch& batch,
                                     const Slice& slice);

}  // namespace hetseq
