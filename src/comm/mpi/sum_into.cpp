#include "sum_into.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace hetseq {

template <class Value>
void sum_into(Value* __restrict total, const Value* __restrict other, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        total[i] = total[i] + other[i];
}

template void sum_into(float*, const float*, std::size_t);
template void sum_into(double*, const double*, std::size_t);
template void sum_into(c10::BFloat16*, const c10::BFloat16*, std::size_t);
template void sum_into(c10::Half*, const c10::Half*, std::size_t);

}  // namespace hetseq
