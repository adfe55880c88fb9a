#pragma once

#include <c10/core/Allocator.h>

namespace hetseq::stand_in {

/// Host memory of cudaHostAlloc. libtorch_cuda's own waits for the copies out of a block before it
/// gives the block out again; this one gives none out again.
c10::Allocator& pinned_memory();

}  // namespace hetseq::stand_in
