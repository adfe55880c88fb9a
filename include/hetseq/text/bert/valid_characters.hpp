#pragma once

#include <string>
#include <string_view>

namespace hetseq {

/// The characters of `text` in UTF-8 without the bytes that belong to none, as Python's
/// decode("utf-8", "ignore") gives them.
std::u32string decode_valid_characters(std::string_view text);

/// str.strip()
std::u32string_view without_blanks_around(std::u32string_view text);

}  // namespace hetseq
