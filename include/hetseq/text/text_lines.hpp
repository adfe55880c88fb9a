#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace hetseq {

/// The lines of a text in UTF-8, without their ends (LF or CRLF) and without a byte order mark.
/// `name` is what errors call it. Throws BadData that names the first line that is not UTF-8 or
/// holds a CR, IoError if reading fails.
std::vector<std::string> read_text_lines(std::istream& text, const std::string& name);

/// The same of a file. Throws MissingInput if it cannot be opened.
std::vector<std::string> read_text_lines(const std::string& path);

}  // namespace hetseq
