#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "transformer_ops.hpp"

namespace hetseq::detail {

/// Where the rows of n sequences lie, end to end without padding.
struct AttentionSpans {
    std::vector<std::int64_t> keys;     // (n + 1): sequence s has the rows [keys[s], keys[s + 1])
    std::vector<std::int64_t> queries;  // (n + 1), likewise
    at::Tensor query_positions;  // (queries) int64, in their sequences; undefined: the queries are
                                 // the keys' rows
};

/// Multi-head scaled dot-product attention within each sequence, on a CPU, in fp32 or fp64. One
/// head of one sequence is computed at a time, so that its scores stay in the cache.
/// `queries` (R, H) and `keys_values` (N, 2H), keys and values side by side; or `queries` (N, 3H)
/// holds all three and `keys_values` is undefined. `dropout.sample_ids` (n); its mask is that of
/// `self_attention`. Returns (R, H).
at::Tensor sequence_attention(const at::Tensor& queries,
                              const at::Tensor& keys_values,
                              const AttentionSpans& spans,
                              std::int64_t heads,
                              const Dropout& dropout,
                              const DropoutExtent& extent);

}  // namespace hetseq::detail
