#pragma once

#include <string>
#include <string_view>

namespace hetseq {

/// Python's str.lower(): a capital sigma that ends a word becomes the final one, and U+0130 becomes
/// two characters.
std::u32string lower_case(std::u32string_view text);

}  // namespace hetseq
