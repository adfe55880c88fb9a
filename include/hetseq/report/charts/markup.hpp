#pragma once

#include <string>
#include <string_view>

namespace hetseq {

/// `text` as content or as a quoted attribute of HTML or XML; bytes that are not UTF-8 or not
/// allowed in XML become U+FFFD.
std::string escaped(std::string_view text);

/// A coordinate to a tenth: "12", "12.3".
std::string coordinate(double value);

}  // namespace hetseq
