#include "wire_format.hpp"

#include <limits>

namespace hetseq {

std::optional<std::uint64_t> WireReader::take_varint() {
    constexpr std::size_t longest = 10;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < longest && i < rest_.size(); ++i) {
        const auto byte = static_cast<unsigned char>(rest_[i]);
        value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            rest_.remove_prefix(i + 1);
            return value;
        }
    }
    return std::nullopt;
}

// The lowest byte stands first.
std::optional<std::uint64_t> WireReader::take_fixed(std::size_t bytes) {
    if (rest_.size() < bytes)
        return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
    rest_.remove_prefix(bytes);
    return value;
}

std::optional<WireField> WireReader::take_field() {
    const auto tag = take_varint();
    if (!tag || *tag > std::numeric_limits<std::uint32_t>::max() || *tag >> 3 == 0)
        return std::nullopt;
    WireField field{static_cast<std::uint32_t>(*tag >> 3), static_cast<WireType>(*tag & 7)};
    std::optional<std::uint64_t> value;
    switch (field.type) {
        case WireType::varint:
        case WireType::bytes:
            value = take_varint();
            break;
        case WireType::fixed64:
            value = take_fixed(8);
            break;
        case WireType::fixed32:
            value = take_fixed(4);
            break;
        default:
            return std::nullopt;
    }
    if (!value || (field.type == WireType::bytes && *value > rest_.size()))
        return std::nullopt;
    field.value = *value;
    if (field.type == WireType::bytes) {
        field.bytes = rest_.substr(0, *value);
        rest_.remove_prefix(*value);
    }
    return field;
}

std::optional<WireField> WireReader::next() {
    if (rest_.empty() || is_damaged_)
        return std::nullopt;
    std::optional<WireField> field = take_field();
    is_damaged_ = !field;
    return field;
}

}  // namespace hetseq
