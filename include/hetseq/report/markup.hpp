#pragma once

#include <string>
#include <string_view>

namespace hetseq {

/// `text` as content or as a quoted attribute of HTML or XML; what is not UTF-8 or may not stand in
/// XML becomes U+FFFD.
std::string escaped(std::string_view text);

/// A coordinate to a tenth: "12", "12.3".
std::string coordinate(double value);

}  // namespace hetseq
