#pragma once

#include <cstddef>

namespace hetseq {

/// Types in which a corpus's values are kept in memory. `boolean` is one byte, 0 or 1.
enum class ElementType { uint8, int8, int32, int64, float16, float32, float64, boolean };

constexpr std::size_t size_of(ElementType type) noexcept {  // bytes
    switch (type) {
        case ElementType::uint8:
        case ElementType::int8:
        case ElementType::boolean:
            return 1;
        case ElementType::float16:
            return 2;
        case ElementType::int32:
        case ElementType::float32:
            return 4;
        case ElementType::int64:
        case ElementType::float64:
            break;
    }
    return 8;
}

/// True if values of `type` are floating point.
constexpr bool is_real(ElementType type) noexcept {
    return type == ElementType::float16 || type == ElementType::float32 ||
           type == ElementType::float64;
}

}  // namespace hetseq
