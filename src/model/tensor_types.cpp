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

at::ScalarType scalar_type_of(const SafetensorEntry& entry, const std::filesystem::path& path) {
    switch (entry.type) {
        case SafetensorType::F64:
            return at::kDouble;
        case SafetensorType::F32:
            return at::kFloat;
        case SafetensorType::F16:
            return at::kHalf;
        case SafetensorType::BF16:
            return at::kBFloat16;
        default:
            throw BadData("tensor '" + entry.name + "' of " + path.string() + " is of type " +
                              name_of(entry.type),
                          "parameters are F64, F32, F16 or BF16",
                          "check that it is the file of a model");
    }
}

}  // namespace hetseq
