#pragma once

#include <cstdint>
#include <vector>

namespace hetseq {

/// The lengths of rows, by ragged field in the schema's order, then by sample.
using RowLengths = std::vector<std::vector<std::int32_t>>;

}  // namespace hetseq
