#include "line_source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/text/utf8.hpp"

#include <poll.h>

namespace hetseq {

namespace {

constexpr std::size_t read_bytes = std::size_t{1} << 16;

bool has_input(int descriptor, int timeout_ms) {
    pollfd poll_on{descriptor, POLLIN, 0};
    return ::poll(&poll_on, 1, timeout_ms) > 0;
}

}  // namespace

bool LineSource::read(int timeout_ms) {
    if (at_end_ || !has_input(descriptor_, timeout_ms))
        return false;
    buffer_.erase(0, taken_);
    searched_ -= std::min(searched_, taken_);
    taken_ = 0;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + read_bytes);
    const ssize_t count = ::read(descriptor_, buffer_.data() + before, read_bytes);
    const int error = errno;
    buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && error != EINTR && error != EAGAIN)
        throw IoError("cannot read " + name_, std::strerror(error));
    at_end_ = count == 0;
    return count > 0;
}

std::optional<std::string> LineSource::next() {
    const std::size_t end = buffer_.find('\n', std::max(taken_, searched_));
    const bool is_last = end == std::string::npos;
    if ((is_last ? buffer_.size() : end) - taken_ > longest_line)
        throw BadData(name_ + ", line " + std::to_string(lines_ + 1) + " is longer than 1 MiB",
                      "it is no sentence",
                      "give one sentence a line");
    if (is_last && (!at_end_ || taken_ == buffer_.size())) {
        searched_ = buffer_.size();
        return std::nullopt;
    }
    std::string_view line =
        std::string_view{buffer_}.substr(taken_, is_last ? std::string::npos : end - taken_);
    taken_ = is_last ? buffer_.size() : end + 1;
    if (++lines_ == 1)
        line = begin_of_text(line, name_);
    line = without_line_end(line);
    const auto place = [this] { return name_ + ", line " + std::to_string(lines_); };
    if (const std::size_t valid = valid_utf8_bytes(line); valid < line.size())
        throw BadData(place() + " is not UTF-8",
                      "byte " + std::to_string(valid + 1) + " of it",
                      "convert the text, for example with iconv -t UTF-8");
    check_line_end(line, place);
    return std::string{line};
}

}  // namespace hetseq
