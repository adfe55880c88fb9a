#include "hetseq/text/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace hetseq {

namespace {

constexpr std::uint64_t high_bits = 0x8080808080808080;

bool is_ascii_word(const char* bytes) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return (word & high_bits) == 0;
}

bool continues(unsigned char byte) noexcept {
    return (byte & 0xc0) == 0x80;
}

// Bytes of the character at the start of `text`, which is not ASCII; 0 where it is not UTF-8. The
// second byte's range depends on the first one (RFC 3629, section 4).
std::size_t character_bytes(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 0 || first > 0xf4 || text.size() < length)
        return 0;
    const unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (byte(1) < least || byte(1) > most)
        return 0;
    for (std::size_t i = 2; i < length; ++i)
        if (!continues(byte(i)))
            return 0;
    return length;
}

}  // namespace

std::size_t valid_utf8_bytes(std::string_view text) noexcept {
    std::size_t at = 0;
    while (at < text.size()) {
        if (at + sizeof(std::uint64_t) <= text.size() && is_ascii_word(text.data() + at)) {
            at += sizeof(std::uint64_t);
        } else if (static_cast<unsigned char>(text[at]) < 0x80) {
            ++at;
        } else {
            const std::size_t length = character_bytes(text.substr(at));
            if (length == 0)
                return at;
            at += length;
        }
    }
    return at;
}

}  // namespace hetseq
