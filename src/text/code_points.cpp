#include "hetseq/text/code_points.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/text/utf8.hpp"

#include <utf8proc.h>

namespace hetseq {

std::u32string decode_utf8(std::string_view text) {
    const std::size_t valid = valid_utf8_bytes(text);
    if (valid != text.size())
        throw BadData("a text is not UTF-8",
                      "byte " + std::to_string(valid + 1) + " begins no character",
                      "convert it to UTF-8");
    std::u32string decoded;
    decoded.reserve(text.size());
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    for (std::size_t at = 0; at < text.size();) {
        utf8proc_int32_t character = 0;
        at += static_cast<std::size_t>(utf8proc_iterate(
            bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &character));
        decoded += static_cast<char32_t>(character);
    }
    return decoded;
}

std::string encode_utf8(std::u32string_view text) {
    std::string encoded;
    encoded.reserve(text.size());
    for (const char32_t character : text) {
        utf8proc_uint8_t bytes[4];
        const utf8proc_ssize_t count =
            utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes);
        encoded.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
    }
    return encoded;
}

// The characters of category Zs, and those of bidirectional type WS, B or S.
bool is_blank(char32_t character) {
    if (character < 0x80)
        return character == ' ' || (character >= 0x09 && character <= 0x0d) ||
               (character >= 0x1c && character <= 0x1f);
    return character == 0x85 || character == 0xa0 || character == 0x1680 ||
           (character >= 0x2000 && character <= 0x200a) || character == 0x2028 ||
           character == 0x2029 || character == 0x202f || character == 0x205f || character == 0x3000;
}

std::u32string_view without_trailing_blanks(std::u32string_view text) {
    while (!text.empty() && is_blank(text.back()))
        text.remove_suffix(1);
    return text;
}

std::vector<std::u32string_view> words_between_blanks(std::u32string_view text) {
    std::vector<std::u32string_view> words;
    for (std::size_t at = 0; at < text.size();) {
        if (is_blank(text[at])) {
            ++at;
            continue;
        }
        const std::size_t begin = at;
        while (at < text.size() && !is_blank(text[at]))
            ++at;
        words.push_back(text.substr(begin, at - begin));
    }
    return words;
}

}  // namespace hetseq
