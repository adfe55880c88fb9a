#pragma once

#include <cstddef>

namespace hetseq {

/// Types in which a corpus's values are kept in memory.
enum class ElementType { uint8, int8, int32, int64 };

constexpr std::size_t size_of(ElementType type) noexcept {  // bytes
    switch (type) {
        case ElementType::uint8:
        case ElementType::int8:
            return 1;
        case ElementType::int32:
            return 4;
        case ElementType::int64:
            break;
    }
    return 8;
}

}  // namespace hetseq
