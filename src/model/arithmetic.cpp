#include "hetseq/model/arithmetic.hpp"

namespace hetseq {

at::ScalarType parameter_type(Precision precision) {
    return precision == Precision::fp64 ? at::kDouble : at::kFloat;
}

std::optional<at::ScalarType> autocast_type(Precision precision) {
    if (precision == Precision::bf16)
        return at::kBFloat16;
    if (precision == Precision::fp16)
        return at::kHalf;
    return std::nullopt;
}

}  // namespace hetseq
