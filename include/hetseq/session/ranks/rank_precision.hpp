#pragma once

#include <vector>

#include <c10/core/Device.h>

#include "hetseq/util/precision.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/session/ranks/rank_choices.hpp"

namespace hetseq {

/// What `device`, of the rank `info`, computes in by `choice`. Without one: bf16 on GPUs since
/// Ampere and on CPUs with instructions for it, fp16 on those since Volta, fp32 on others. tf32 is
/// fp32 where there is none. Throws BadConfig for a precision that the device has not.
Precision rank_precision(PrecisionChoice choice, const RankInfo& info, at::Device device);

/// Makes this process compute its products so: tf32 alone rounds operands by itself, sums of
/// products are fp32, and the same input gives the same bits.
void compute_in(Precision precision);

/// Throws BadConfig where some ranks compute in fp64 and others do not.
void check_precisions(const std::vector<Precision>& by_rank);

}  // namespace hetseq
