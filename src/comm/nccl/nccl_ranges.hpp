#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/util/owned_range.hpp"

#include "nccl_channel.hpp"

namespace hetseq {

/// Of calls. NCCL 2.11 documents 2,048 as the most that a group takes; later ones name no limit.
constexpr std::size_t most_in_nccl_group = 1024;

/// These ask NCCL for work on the channel's stream with ranges of `tensor`, in place. It is
/// contiguous and on the device of `channel`, whose ranks own the ranges; these are in order and do
/// not overlap, and need not cover the tensor. NCCL has calls for parts of one length alone, one
/// for each rank in order. All else takes a call for each range, in groups of at most
/// `most_in_nccl_group`. All ranks ask for the same.
///
/// Sums the values over all ranks, each range at its owner. The types are those of gradients. Of
/// others' ranges nothing is known afterwards.
void launch_nccl_reduce_scatter(NcclChannel& channel,
                                const at::Tensor& tensor,
                                const std::vector<OwnedRange>& ranges);
/// Copies each range from its owner to all ranks. Values may be of any type.
void launch_nccl_all_gather(NcclChannel& channel,
                            const at::Tensor& tensor,
                            const std::vector<OwnedRange>& ranges);

}  // namespace hetseq
