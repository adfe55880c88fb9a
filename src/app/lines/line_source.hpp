#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hetseq {

/// Lines of text from a file descriptor, as they arrive.
class LineSource {
public:
    /// `name` is what errors call it.
    LineSource(int descriptor, std::string name)
        : descriptor_{descriptor}, name_{std::move(name)} {}

    /// Reads what is there; waits up to `timeout_ms` for it. False if nothing came. Throws IoError.
    bool read(int timeout_ms);
    /// True when everything was read; lines may be left to take.
    bool at_end() const { return at_end_; }
    /// The next whole line that was read, without its end (LF or CRLF); the first one without a
    /// byte order mark. Throws BadData that names the line for bytes that are not UTF-8, for a CR
    /// within a line and for a line of more than `longest_line` bytes.
    std::optional<std::string> next();

    std::int64_t lines() const { return lines_; }  // taken so far

    static constexpr std::size_t longest_line = std::size_t{1} << 20;

private:
    int descriptor_;
    std::string name_;
    std::string buffer_;
    std::size_t taken_ = 0;     // bytes of the buffer
    std::size_t searched_ = 0;  // bytes without an end of line
    bool at_end_ = false;
    std::int64_t lines_ = 0;
};

}  // namespace hetseq
