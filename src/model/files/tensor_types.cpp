#include "hetseq/model/files/tensor_types.hpp"

#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

constexpr std::pair<at::ScalarType, SafetensorType> types[] = {
    {at::kDouble, SafetensorType::F64},
    {at::kFloat, SafetensorType::F32},
    {at::kHalf, SafetensorType::F16},
    {at::kBFloat16, SafetensorType::BF16},
    {at::kLong, SafetensorType::I64},
    {at::kInt, SafetensorType::I32},
    {at::kShort, SafetensorType::I16},
    {at::kChar, SafetensorType::I8},
    {at::kUInt64, SafetensorType::U64},
    {at::kUInt32, SafetensorType::U32},
    {at::kUInt16, SafetensorType::U16},
    {at::kByte, SafetensorType::U8},
    {at::kBool, SafetensorType::BOOL},
};

}  // namespace

SafetensorType file_type_of(at::ScalarType type) {
    for (const auto& [in_memory, in_file] : types)
        if (in_memory == type)
            return in_file;
    throw BadConfig(std::string("the model has a tensor of type ") + at::toString(type),
                    "safetensors files hold floating point, integers and booleans",
                    "give it one of these types");
}

at::ScalarType scalar_type_of(SafetensorType type) noexcept {
    for (const auto& [in_memory, in_file] : types)
        if (in_file == type)
            return in_memory;
    return at::ScalarType::Undefined;
}

}  // namespace hetseq
