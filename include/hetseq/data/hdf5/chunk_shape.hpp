#pragma once

#include <cstdint>
#include <vector>

namespace hetseq {

/// The chunks that h5py 3 chooses for a compressed dataset of this shape, with elements of `bytes`:
/// the shape, halved axis by axis until a chunk has about 8 KiB to 1 MiB, more for larger data.
/// All lengths are at least 1.
std::vector<std::int64_t> chunk_shape(std::vector<std::int64_t> shape, std::int64_t bytes);

}  // namespace hetseq
