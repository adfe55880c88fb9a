#include <array>

#include "hetseq/util/files/safetensors.hpp"

#include "safetensors_header.hpp"

namespace hetseq {

namespace {

struct TypeInfo {
    SafetensorType type;
    const char* name;
    std::size_t size;
};

constexpr std::array<TypeInfo, 13> types{{
    {SafetensorType::F64, "F64", 8},
    {SafetensorType::F32, "F32", 4},
    {SafetensorType::F16, "F16", 2},
    {SafetensorType::BF16, "BF16", 2},
    {SafetensorType::I64, "I64", 8},
    {SafetensorType::I32, "I32", 4},
    {SafetensorType::I16, "I16", 2},
    {SafetensorType::I8, "I8", 1},
    {SafetensorType::U64, "U64", 8},
    {SafetensorType::U32, "U32", 4},
    {SafetensorType::U16, "U16", 2},
    {SafetensorType::U8, "U8", 1},
    {SafetensorType::BOOL, "BOOL", 1},
}};

const TypeInfo& info(SafetensorType type) noexcept {
    return types[static_cast<std::size_t>(type)];
}

}  // namespace

std::size_t size_of(SafetensorType type) noexcept {
    return info(type).size;
}

const char* name_of(SafetensorType type) noexcept {
    return info(type).name;
}

std::optional<SafetensorType> detail::safetensor_type(const std::string& name) noexcept {
    for (const TypeInfo& candidate : types)
        if (name == candidate.name)
            return candidate.type;
    return std::nullopt;
}

std::string shape_text(std::span<const std::int64_t> shape) {
    std::string text = "(";
    for (const std::int64_t extent : shape)
        text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
    return text + ")";
}

}  // namespace hetseq
