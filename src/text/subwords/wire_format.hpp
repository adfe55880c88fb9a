#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hetseq {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// One field of a message of protocol buffers.
struct WireField {
    std::uint32_t number = 0;
    WireType type = WireType::varint;
    std::uint64_t value = 0;      // of the types that are numbers
    std::string_view bytes = {};  // of WireType::bytes
};

/// The fields of a message in protocol buffers' wire format
/// (protobuf.dev/programming-guides/encoding), one after the other. Groups, which are obsolete, are
/// damage.
class WireReader {
public:
    explicit WireReader(std::string_view message) : rest_{message} {}

    /// Nothing at the end of the message, or of its good part.
    std::optional<WireField> next();
    bool is_damaged() const { return is_damaged_; }

private:
    std::optional<std::uint64_t> take_varint();
    std::optional<std::uint64_t> take_fixed(std::size_t bytes);
    std::optional<WireField> take_field();

    std::string_view rest_;
    bool is_damaged_ = false;
};

}  // namespace hetseq
