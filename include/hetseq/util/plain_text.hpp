#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hetseq/util/error.hpp"

namespace hetseq {

// What all readers of text have in common (docs/data.md, 'Text files'): UTF-8, a byte order mark
// may begin it, a line ends with LF or CRLF.

/// Says what is wrong where `bytes` begin as UTF-16 or UTF-32 do. `origin` names the file.
std::optional<Explanation> encoding_fault(std::string_view bytes, const std::string& origin);

/// `bytes` without the byte order mark of UTF-8 that may begin them.
std::string_view without_byte_order_mark(std::string_view bytes) noexcept;

/// The same of a whole text or of its first line. Throws BadData for UTF-16 and UTF-32.
std::string_view begin_of_text(std::string_view bytes, const std::string& origin);

/// A line whose LF is taken off already, without the CR before it.
std::string_view without_line_end(std::string_view line) noexcept;

/// True if a CR stands in `line`, which is without its end.
bool holds_carriage_return(std::string_view line) noexcept;

/// What is wrong with such a line. `place` names it ("FILE, line 3").
Explanation carriage_return_fault(const std::string& place);

/// Throws BadData for such a line. `place()` names it.
template <class Place>
void check_line_end(std::string_view line, const Place& place) {
    if (!holds_carriage_return(line))
        return;
    const Explanation fault = carriage_return_fault(place());
    throw BadData(fault.problem, fault.why, fault.what_to_do);
}

/// Takes the first line off `text`, which has no byte order mark; gives it without its end.
std::string_view take_line(std::string_view& text) noexcept;

}  // namespace hetseq
