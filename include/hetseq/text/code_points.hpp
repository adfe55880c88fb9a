#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hetseq {

/// Text as Python's `str` has it: code points, with Python's rules for blanks and lower case. What
/// is compared with programs in Python (sacreBLEU) is computed on it.

/// Throws BadData that names the byte where `text` is not UTF-8.
std::u32string decode_utf8(std::string_view text);

std::string encode_utf8(std::u32string_view text);

/// str.isspace() of one character.
bool is_blank(char32_t character);

/// str.rstrip()
std::u32string_view without_trailing_blanks(std::u32string_view text);

/// str.split(): the words between blanks, as views into `text`.
std::vector<std::u32string_view> words_between_blanks(std::u32string_view text);

}  // namespace hetseq
