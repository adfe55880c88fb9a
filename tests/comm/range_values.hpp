#pragma once

#include <cstdint>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/remainder.h>

#include "hetseq/util/owned_range.hpp"

namespace hetseq::test {

/// A rank's values, which all ranks can compute. They are of unlike size, so that another order of
/// additions shows in the last bits.
inline at::Tensor terms(int rank, std::int64_t count, at::ScalarType type) {
    const at::Tensor i = at::arange(count, at::kDouble);
    return (at::cos(i * (rank + 3) + 0.7) * at::exp2(at::remainder(i + 3 * rank, 13))).to(type);
}

/// Small whole numbers, whose sums over a few ranks are exact in every type.
inline at::Tensor whole_terms(int rank, std::int64_t count, at::ScalarType type) {
    return at::remainder(at::arange(count, at::kLong) * 7 + 5 * rank, 16).to(type);
}

inline at::Tensor part_of(const at::Tensor& tensor, const OwnedRange& range) {
    return tensor.narrow(0, range.begin, range.length);
}

}  // namespace hetseq::test
