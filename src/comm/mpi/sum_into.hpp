#pragma once

#include <cstddef>
#include <span>

namespace hetseq {

/// total[i] = total[i] + other[i], for `count` elements of type `Value`: float, double,
/// c10::BFloat16 or c10::Half (these two round after each addition).
template <class Value>
void sum_into(Value* total, const Value* other, std::size_t count);

/// target[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ..., for `count` elements. Values of
/// 16 bits are added in fp32, and the sum is rounded once. `target` may be one of the parts, of
/// which there are two at least.
template <class Value>
void sum_in_order(Value* target, std::span<const Value* const> parts, std::size_t count);

}  // namespace hetseq
