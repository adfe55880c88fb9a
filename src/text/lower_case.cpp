#include "hetseq/text/lower_case.hpp"

#include <algorithm>
#include <array>

#include <utf8proc.h>

namespace hetseq {

namespace {

constexpr char32_t capital_sigma = 0x3a3;
constexpr char32_t small_sigma = 0x3c3;
constexpr char32_t final_sigma = 0x3c2;
constexpr char32_t capital_i_with_dot = 0x130;  // the only one whose lower case is two characters
constexpr char32_t dot_above = 0x307;

struct CharacterRange {
    char32_t first;
    char32_t last;
};

template <std::size_t Count>
bool is_in(const std::array<CharacterRange, Count>& ranges, char32_t character) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const CharacterRange& range) {
        return character >= range.first && character <= range.last;
    });
}

// Cased characters that are no letters of either case (Other_Lowercase and Other_Uppercase of
// Unicode's PropList.txt), but for those that are ignored anyway.
constexpr std::array<CharacterRange, 7> other_cased{{{0xaa, 0xaa},
                                                     {0xba, 0xba},
                                                     {0x2160, 0x217f},
                                                     {0x24b6, 0x24e9},
                                                     {0x1f130, 0x1f149},
                                                     {0x1f150, 0x1f169},
                                                     {0x1f170, 0x1f189}}};

// Punctuation inside words: MidLetter, MidNumLet and Single_Quote of WordBreakProperty.txt.
constexpr std::array<CharacterRange, 16> inside_words{{{0x27, 0x27},
                                                       {0x2e, 0x2e},
                                                       {0x3a, 0x3a},
                                                       {0xb7, 0xb7},
                                                       {0x387, 0x387},
                                                       {0x55f, 0x55f},
                                                       {0x5f4, 0x5f4},
                                                       {0x2018, 0x2019},
                                                       {0x2024, 0x2024},
                                                       {0x2027, 0x2027},
                                                       {0xfe13, 0xfe13},
                                                       {0xfe52, 0xfe52},
                                                       {0xfe55, 0xfe55},
                                                       {0xff07, 0xff07},
                                                       {0xff0e, 0xff0e},
                                                       {0xff1a, 0xff1a}}};

utf8proc_category_t category_of(char32_t character) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

// Case_Ignorable of the Unicode Standard (D136).
bool is_case_ignorable(char32_t character) {
    switch (category_of(character)) {
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_SK:
            return true;
        default:
            return is_in(inside_words, character);
    }
}

// Cased (D135), of a character that is not ignorable.
bool is_cased(char32_t character) {
    switch (category_of(character)) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
            return true;
        default:
            return is_in(other_cased, character);
    }
}

// Final_Sigma (table 3-17): a cased character stands before the sigma, and none after it, whatever
// ignorable ones are between.
bool is_final_sigma(std::u32string_view text, std::size_t at) {
    const auto before = std::find_if_not(
        text.rend() - static_cast<std::ptrdiff_t>(at), text.rend(), is_case_ignorable);
    const auto after = std::find_if_not(
        text.begin() + static_cast<std::ptrdiff_t>(at) + 1, text.end(), is_case_ignorable);
    return before != text.rend() && is_cased(*before) && (after == text.end() || !is_cased(*after));
}

}  // namespace

std::u32string lower_case(std::u32string_view text) {
    std::u32string lower;
    lower.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == capital_sigma)
            lower += is_final_sigma(text, at) ? final_sigma : small_sigma;
        else if (text[at] == capital_i_with_dot)
            lower += {U'i', dot_above};
        else
            lower +=
                static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(text[at])));
    }
    return lower;
}

}  // namespace hetseq
