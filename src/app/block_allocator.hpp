#pragma once

namespace hetseq {

/// From now on the large tensors of this process on the CPU come from a `BlockCache`. Once, before
/// there are threads.
void use_block_cache();

}  // namespace hetseq
