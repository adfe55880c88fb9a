#pragma once

#include <cstdint>
#include <string>

#include "hetseq/data/loading/micro_batch.hpp"

namespace hetseq {

/// The length of each row of the ragged field `name`, (n) int64. `rows` are as collators get them.
at::Tensor row_lengths(const TensorDict& rows, const std::string& name);

/// The rows of the ragged field `name` as a matrix (n, longest row, at least `least`), with
/// `padding` behind the shorter ones. The type is the field's.
at::Tensor padded_rows(const TensorDict& rows,
                       const std::string& name,
                       double padding,
                       std::int64_t least = 0);

/// Says in `batch` which values of its rows of tokens are no padding, so that a model computes
/// those alone: `row_lengths` and, where there is padding, the tensor "token_places", (N) int64:
/// the places of the N tokens in the padded rows n * T, ascending. `mask` (n, T): 0 for padding.
/// `needed`: places that the model reads. Nothing is said where tokens stand behind padding or a
/// needed place is padding.
void note_row_lengths(MicroBatch& batch, const at::Tensor& mask, const at::Tensor& needed);

}  // namespace hetseq
