#pragma once

#include <cstddef>

namespace hetseq {

/// total[i] = total[i] + other[i], for `count` elements of type `Value`: float, double,
/// c10::BFloat16 or c10::Half (these two round after each addition).
template <class Value>
void sum_into(Value* total, const Value* other, std::size_t count);

}  // namespace hetseq
