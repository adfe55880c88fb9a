#pragma once

#include <string_view>

namespace hetseq {

/// True if nothing but blanks stands in `line`, as Python's str.strip() sees it. Bytes that are not
/// UTF-8 count as nothing.
bool is_blank_line(std::string_view line);

}  // namespace hetseq
