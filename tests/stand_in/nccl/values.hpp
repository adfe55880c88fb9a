// The values that NCCL's stand-in adds.
#pragma once

#include <cstddef>
#include <functional>

#include <nccl.h>

namespace hetseq::stand_in {

using Addition = std::function<void(void* sum, const void* part)>;

/// Of `count` values. Empty, and reported, for what the stand-in does not imitate.
Addition addition(ncclDataType_t type, ncclRedOp_t operation, std::size_t count);

std::size_t size_of(ncclDataType_t type);

}  // namespace hetseq::stand_in
