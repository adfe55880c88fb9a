#pragma once

namespace hetseq::stand_in {

/// Tensors on devices that operators have made so far.
long tensors_made();

/// The next `count` tensors are made, the one after them finds no memory, as where the caching
/// allocator has none left; negative: none fails.
void fail_tensor_after(long count);

}  // namespace hetseq::stand_in
