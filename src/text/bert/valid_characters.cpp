#include "hetseq/text/bert/valid_characters.hpp"

#include "hetseq/text/code_points.hpp"

#include <utf8proc.h>

namespace hetseq {

std::u32string decode_valid_characters(std::string_view text) {
    std::u32string characters;
    characters.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        utf8proc_int32_t character = 0;
        const utf8proc_ssize_t bytes =
            utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                             static_cast<utf8proc_ssize_t>(text.size() - at),
                             &character);
        if (bytes > 0)
            characters += static_cast<char32_t>(character);
        at += bytes > 0 ? static_cast<std::size_t>(bytes) : 1;
    }
    return characters;
}

std::u32string_view without_blanks_around(std::u32string_view text) {
    text = without_trailing_blanks(text);
    while (!text.empty() && is_blank(text.front()))
        text.remove_prefix(1);
    return text;
}

}  // namespace hetseq
