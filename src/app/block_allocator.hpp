#pragma once

namespace hetseq {

/// From now on the large tensors of this process on the CPU come from `tensor_blocks`. Once,
/// before there are threads.
void use_mapped_blocks();

}  // namespace hetseq
