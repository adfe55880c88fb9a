#include "hetseq/util/plain_text.hpp"

#include <algorithm>

namespace hetseq {

namespace {

constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";

// Bytes of ASCII characters in UTF-16 without a mark: every other one is 0.
bool alternates_with_zeros(std::string_view bytes, std::size_t first_zero) noexcept {
    constexpr std::size_t looked_at = 4;
    if (bytes.size() < looked_at)
        return false;
    for (std::size_t i = 0; i < looked_at; ++i)
        if ((bytes[i] == '\0') != (i % 2 == first_zero))
            return false;
    return true;
}

// The name of an encoding that is not UTF-8; empty where there is no sign of one.
std::string_view other_encoding(std::string_view bytes) noexcept {
    using namespace std::string_view_literals;
    if (bytes.starts_with("\xFF\xFE\0\0"sv) || bytes.starts_with("\0\0\xFE\xFF"sv))
        return "UTF-32";
    if (bytes.starts_with("\xFF\xFE"sv) || bytes.starts_with("\xFE\xFF"sv) ||
        alternates_with_zeros(bytes, 0) || alternates_with_zeros(bytes, 1))
        return "UTF-16";
    return {};
}

}  // namespace

std::optional<Explanation> encoding_fault(std::string_view bytes, const std::string& origin) {
    const std::string name{other_encoding(bytes)};
    if (name.empty())
        return std::nullopt;
    return Explanation{origin + " is text in " + name,
                       "only UTF-8 is read",
                       "convert it: iconv -f " + name + " -t UTF-8"};
}

std::string_view without_byte_order_mark(std::string_view bytes) noexcept {
    return bytes.substr(bytes.starts_with(utf8_mark) ? utf8_mark.size() : 0);
}

std::string_view begin_of_text(std::string_view bytes, const std::string& origin) {
    if (const auto fault = encoding_fault(bytes, origin))
        throw BadData(fault->problem, fault->why, fault->what_to_do);
    return without_byte_order_mark(bytes);
}

std::string_view without_line_end(std::string_view line) noexcept {
    return line.substr(0, line.size() - (line.ends_with('\r') ? 1 : 0));
}

bool holds_carriage_return(std::string_view line) noexcept {
    return line.find('\r') != std::string_view::npos;
}

Explanation carriage_return_fault(const std::string& place) {
    return {place + " holds a carriage return",
            "a line ends with LF or CRLF",
            "where CR ends the lines, convert the file by tr '\\r' '\\n'; otherwise take it out of "
            "the line"};
}

std::string_view take_line(std::string_view& text) noexcept {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return without_line_end(line);
}

}  // namespace hetseq
