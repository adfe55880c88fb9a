#pragma once

#include <cstddef>
#include <string_view>

namespace hetseq {

/// How many bytes from the start of `text` are UTF-8 (RFC 3629: no surrogates, nothing longer than
/// needed, at most U+10FFFF); `text.size()` where all are.
std::size_t valid_utf8_bytes(std::string_view text) noexcept;

}  // namespace hetseq
