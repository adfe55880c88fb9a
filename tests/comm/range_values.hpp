#pragma once

#include <algorithm>
#include <cstdint>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/remainder.h>

#include "hetseq/util/owned_range.hpp"

namespace hetseq::test {

/// `count` values, of which `make` computes the first ones by their places. After these the same
/// come again, since sines of millions take long. So many are a prime, where no message and no
/// chunk ends.
template <class Make>
at::Tensor repeated(std::int64_t count, const Make& make) {
    constexpr std::int64_t most = 100'003;
    const at::Tensor first = make(at::arange(std::min(count, most), at::kDouble));
    return count <= most ? first : first.repeat({(count + most - 1) / most}).narrow(0, 0, count);
}

/// A rank's values, which all ranks can compute. They are of unlike size, so that another order of
/// additions shows in the last bits.
inline at::Tensor terms(int rank, std::int64_t count, at::ScalarType type) {
    return repeated(count, [&](const at::Tensor& i) {
        return (at::cos(i * (rank + 3) + 0.7) * at::exp2(at::remainder(i + 3 * rank, 13))).to(type);
    });
}

/// Small whole numbers, whose sums over a few ranks are exact in every type.
inline at::Tensor whole_terms(int rank, std::int64_t count, at::ScalarType type) {
    return at::remainder(at::arange(count, at::kLong) * 7 + 5 * rank, 16).to(type);
}

inline at::Tensor part_of(const at::Tensor& tensor, const OwnedRange& range) {
    return tensor.narrow(0, range.begin, range.length);
}

}  // namespace hetseq::test
