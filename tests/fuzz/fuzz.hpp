#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "hetseq/util/error.hpp"

/// Ends the fuzzer, which keeps the input, unless `condition` holds.
#define FUZZ_CHECK(condition)                                                                  \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                      \
        }                                                                                      \
    } while (false)

namespace hetseq::fuzz {

/// True if a terminal shows all of `text` as it is.
inline bool is_readable(const std::string& text) {
    for (const char c : text)
        if ((static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') || c == '\x7f')
            return false;
    return !text.empty() && text.size() < (std::size_t{1} << 16);
}

/// The result of `parse`; nothing if it throws a clear Error about the input. Whatever else is
/// thrown, our own mistakes included, ends the fuzzer.
template <class Function>
auto parsed(Function&& parse) -> std::optional<std::decay_t<decltype(parse())>> {
    try {
        return std::forward<Function>(parse)();
    } catch (const Error& error) {
        if (error.code() == ExitCode::internal || !is_readable(error.what())) {
            std::fprintf(stderr, "unclear or internal error: %s\n", error.what());
            std::abort();
        }
        return std::nullopt;
    }
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

}  // namespace hetseq::fuzz
