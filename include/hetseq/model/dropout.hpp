#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace hetseq {

/// Together with a sample's id and an element's index, this is all that a dropout mask depends on.
struct DropoutKey {
    std::uint64_t seed = 1;   // of the run
    std::int64_t update = 0;  // in [0, 2^32)
    std::uint32_t layer = 0;  // in [0, 2^16); each dropout of a model has its own
};

/// How far the last two dimensions of a padded tensor can reach, whatever the longest sample of a
/// micro-batch is.
struct DropoutExtent {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
};

/// Dropout whose mask is a pure function of (key, sample id, element index within the sample): it
/// does not depend on how samples are cut into micro-batches or ranks, and backward computes it
/// again instead of keeping it. Kept elements are scaled by the inverse of the keep probability.
///
/// `x`: (n * k, ...), floating; rows [i * k, (i + 1) * k) belong to the sample `sample_ids[i]`.
/// `sample_ids`: (n) int64 in [0, 2^48), on x's device. `p` in [0, 1) is rounded to a multiple of
/// 2^-16 (never to 1), since one Philox call serves eight elements; the scale uses the rounded
/// value, so that the expectation is exact. `p` = 0 returns `x` itself.
at::Tensor counter_dropout(const at::Tensor& x,
                           double p,
                           const DropoutKey& key,
                           const at::Tensor& sample_ids);

/// The same for `x` (n, k, R, C), R <= extent.rows and C <= extent.columns padded to the longest of
/// the micro-batch: the index of element (i, j, r, c) does not depend on R and C.
at::Tensor counter_dropout(const at::Tensor& x,
                           double p,
                           const DropoutKey& key,
                           const at::Tensor& sample_ids,
                           const DropoutExtent& extent);

/// The same for rows of tokens without their padding: row i of `x` (R, C) is the position
/// `positions[i]` of the sample `sample_ids[i]`, both (R) int64 on x's device. The mask is that of
/// this position in a tensor (n, T, C).
at::Tensor token_dropout(const at::Tensor& x,
                         double p,
                         const DropoutKey& key,
                         const at::Tensor& sample_ids,
                         const at::Tensor& positions);

}  // namespace hetseq
