#include "sum_into.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace hetseq {

namespace {

// Of a core's first cache, beside the parts.
constexpr std::size_t block_bytes = std::size_t{8} << 10;

// The type that values are added in.
template <class Value>
using Sum = std::conditional_t<sizeof(Value) == 2, float, Value>;

// `sums` is nobody else's memory, so that the compiler vectorises each loop, though the target is
// one of the parts.
template <class Value>
void sum_block(Value* target,
               std::span<const Value* const> parts,
               std::size_t begin,
               std::size_t count) {
    std::array<Sum<Value>, block_bytes / sizeof(Sum<Value>)> sums;
    const Value* const first = parts[0] + begin;
    const Value* const second = parts[1] + begin;
    for (std::size_t i = 0; i < count; ++i)
        sums[i] = static_cast<Sum<Value>>(first[i]) + static_cast<Sum<Value>>(second[i]);
    for (const Value* part : parts.subspan(2))
        for (std::size_t i = 0; i < count; ++i)
            sums[i] = sums[i] + static_cast<Sum<Value>>(part[begin + i]);
    for (std::size_t i = 0; i < count; ++i)
        target[begin + i] = static_cast<Value>(sums[i]);
}

}  // namespace

template <class Value>
void sum_into(Value* __restrict total, const Value* __restrict other, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        total[i] = total[i] + other[i];
}

template <class Value>
void sum_in_order(Value* target, std::span<const Value* const> parts, std::size_t count) {
    constexpr std::size_t block = block_bytes / sizeof(Sum<Value>);
    for (std::size_t begin = 0; begin < count; begin += block)
        sum_block(target, parts, begin, std::min(block, count - begin));
}

template void sum_into(float*, const float*, std::size_t);
template void sum_into(double*, const double*, std::size_t);
template void sum_into(c10::BFloat16*, const c10::BFloat16*, std::size_t);
template void sum_into(c10::Half*, const c10::Half*, std::size_t);
template void sum_in_order(float*, std::span<const float* const>, std::size_t);
template void sum_in_order(double*, std::span<const double* const>, std::size_t);
template void sum_in_order(c10::BFloat16*, std::span<const c10::BFloat16* const>, std::size_t);
template void sum_in_order(c10::Half*, std::span<const c10::Half* const>, std::size_t);

}  // namespace hetseq
