#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hetseq/util/vector_clones.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hetseq {

/// The first bytes of a word, with zeros behind it.
struct WordKey {
    static constexpr std::size_t bytes = 32;
    std::array<std::uint64_t, bytes / 8> parts{};

    bool operator==(const WordKey&) const = default;
};

/// ASCII bytes, as a BasicTokenizer takes them. A byte is `other` where a character of more bytes
/// or a control character, which is dropped, may change what stands beside it.
enum class ByteKind : std::uint8_t { letter_or_digit, blank, punctuation, other };

constexpr ByteKind kind_of(unsigned char byte) {
    if ((byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z'))
        return ByteKind::letter_or_digit;
    if (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r')
        return ByteKind::blank;
    return byte > ' ' && byte < 0x7f ? ByteKind::punctuation : ByteKind::other;
}

inline constexpr std::array<ByteKind, 256> byte_kinds = [] {
    std::array<ByteKind, 256> kinds{};
    for (std::size_t byte = 0; byte < kinds.size(); ++byte)
        kinds[byte] = kind_of(static_cast<unsigned char>(byte));
    return kinds;
}();

inline ByteKind kind_at(const char* text) {
    return byte_kinds[static_cast<unsigned char>(*text)];
}

/// What is or'ed to letters and digits. It makes letters small, and digits have this bit already.
enum class CaseBit : std::uint8_t { keep = 0, lower = 0x20 };

// Both count the letters and digits at the start of `text`, up to the length of a key, and put them
// into `key`. As many bytes can be read.

/// Byte for byte.
struct PlainWordScan {
    static HETSEQ_ALWAYS_INLINE std::size_t run(const char* text, CaseBit bit, WordKey& key) {
        std::array<unsigned char, WordKey::bytes> word{};
        std::size_t length = 0;
        for (; length < word.size() && kind_at(text + length) == ByteKind::letter_or_digit;
             ++length)
            word[length] =
                static_cast<unsigned char>(text[length]) | static_cast<unsigned char>(bit);
        std::memcpy(key.parts.data(), word.data(), word.size());
        return length;
    }
};

#if defined(__SSE2__)
/// 16 bytes at once, with what every x86-64 has.
struct VectorWordScan {
    static HETSEQ_ALWAYS_INLINE std::size_t run(const char* text, CaseBit bit, WordKey& key) {
        const std::size_t length = half(text, bit, key.parts.data());
        if (length < half_bytes) [[likely]] {
            key.parts[2] = key.parts[3] = 0;
            return length;
        }
        return length + half(text + half_bytes, bit, key.parts.data() + 2);
    }

private:
    static constexpr std::size_t half_bytes = sizeof(__m128i);

    // True where a byte is in first .. first + count - 1. SSE2 compares signed bytes only.
    static HETSEQ_ALWAYS_INLINE __m128i in_range(__m128i bytes, char first, int count) {
        const __m128i from_least =
            _mm_sub_epi8(bytes, _mm_set1_epi8(static_cast<char>(first - 128)));
        return _mm_cmplt_epi8(from_least, _mm_set1_epi8(static_cast<char>(count - 128)));
    }

    static HETSEQ_ALWAYS_INLINE std::size_t half(const char* text,
                                                 CaseBit bit,
                                                 std::uint64_t* parts) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
        const __m128i small = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
        const __m128i is_word = _mm_or_si128(in_range(small, 'a', 26), in_range(bytes, '0', 10));
        const auto others = static_cast<unsigned>(~_mm_movemask_epi8(is_word)) & 0xffffU;
        const auto length = static_cast<std::size_t>(std::countr_zero(others | 0x10000U));
        // 16 bytes of ones and 16 of zeros: from 16 - length on, as many ones as the word is long.
        alignas(half_bytes) static constexpr std::array<std::uint64_t, 4> ones{
            ~std::uint64_t{0}, ~std::uint64_t{0}, 0, 0};
        const __m128i within = _mm_loadu_si128(reinterpret_cast<const __m128i*>(
            reinterpret_cast<const char*>(ones.data()) + half_bytes - length));
        const __m128i word = _mm_or_si128(bytes, _mm_set1_epi8(static_cast<char>(bit)));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(parts), _mm_and_si128(word, within));
        return length;
    }
};
#else
using VectorWordScan = PlainWordScan;
#endif

}  // namespace hetseq
