#pragma once

#include <cstdint>
#include <string>

#include "hetseq/data/micro_batch.hpp"

namespace hetseq {

/// The length of each row of the ragged field `name`, (n) int64. `rows` are as collators get them.
at::Tensor row_lengths(const TensorDict& rows, const std::string& name);

/// The rows of the ragged field `name` as a matrix (n, longest row, at least `least`), with
/// `padding` behind the shorter ones. The type is the field's.
at::Tensor padded_rows(const TensorDict& rows,
                       const std::string& name,
                       double padding,
                       std::int64_t least = 0);

}  // namespace hetseq
