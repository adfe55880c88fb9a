#include "hetseq/model/tensor_types.hpp"

#include "hetseq/util/error.hpp"

namespace hetseq {

SafetensorType file_type_of(at::ScalarType type) {
    switch (type) {
        case at::kDouble:
            return SafetensorType::F64;
        case at::kFloat:
            return SafetensorType::F32;
        case at::kHalf:
            return SafetensorType::F16;
        case at::kBFloat16:
            return SafetensorType::BF16;
        default:
            HETSEQ_ASSERT(type == at::kLong);
            return SafetensorType::I64;
    }
}

}  // namespace hetseq
