#include "hetseq/report/charts/markup.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>

namespace hetseq {

namespace {

constexpr const char* replacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_continuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// Bytes of the character that `text` begins with; 0 where it begins with none (RFC 3629).
std::size_t character_length(std::string_view text) {
    const auto first = static_cast<unsigned char>(text.front());
    if (first < 0x80)
        return 1;
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < length)
        return 0;
    std::uint32_t code = first & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if (!is_continuation(text[i]))
            return 0;
        code = (code << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
    }
    const std::uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
    const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code < least || code > 0x10FFFF || is_surrogate || code == 0xFFFE || code == 0xFFFF
               ? 0
               : length;
}

// Escapes one byte.
std::string escaped_ascii(char c) {
    switch (c) {
        case '&':
            return "&amp;";
        case '<':
            return "&lt;";
        case '>':
            return "&gt;";
        case '"':
            return "&quot;";
        case '\'':
            return "&#39;";
        default:
            break;
    }
    const bool is_control = static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
    return is_control ? replacement : std::string(1, c);
}

}  // namespace

std::string escaped(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = character_length(text);
        if (length == 1)
            result += escaped_ascii(text.front());
        else
            result += length == 0 ? std::string_view(replacement) : text.substr(0, length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return result;
}

std::string coordinate(double value) {
    const double rounded = std::round(value * 10) / 10;
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", rounded == std::round(rounded) ? 0 : 1, rounded + 0.0);
    return text;
}

}  // namespace hetseq
