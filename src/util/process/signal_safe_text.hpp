#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hetseq {

/// Builds text in the caller's buffer without allocating, so that signal handlers may use it. Text
/// that does not fit is left out.
class SignalSafeText {
public:
    explicit SignalSafeText(std::span<char> buffer) noexcept : buffer_{buffer} {}

    SignalSafeText& append(const char* text) noexcept {
        while (*text != '\0' && size_ < buffer_.size())
            buffer_[size_++] = *text++;
        return *this;
    }

    SignalSafeText& append(std::int64_t number) noexcept {
        std::array<char, 24> digits{};
        std::size_t first = digits.size() - 1;  // the last stays 0
        auto rest =
            number < 0 ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
        do {
            digits[--first] = static_cast<char>('0' + rest % 10);
            rest /= 10;
        } while (rest > 0);
        if (number < 0)
            digits[--first] = '-';
        return append(&digits[first]);
    }

    std::size_t size() const noexcept { return size_; }

private:
    std::span<char> buffer_;
    std::size_t size_ = 0;
};

}  // namespace hetseq
