#include "hetseq/text/scores/bleu_tokenizer.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/text/code_points.hpp"

#include <utf8proc.h>

namespace hetseq {

namespace {

bool is_digit(char32_t character) {
    return character >= '0' && character <= '9';
}

bool is_period_or_comma(char32_t character) {
    return character == '.' || character == ',';
}

// ASCII punctuation and the blank, but for the apostrophe, the comma, the hyphen and the period.
bool is_separate_in_13a(char32_t character) {
    return (character >= '{' && character <= '~') || (character >= '[' && character <= '`') ||
           (character >= ' ' && character <= '&') || (character >= '(' && character <= '+') ||
           (character >= ':' && character <= '@') || character == '/';
}

utf8proc_category_t category(char32_t character) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

bool is_numeric(char32_t character) {  // \p{N}
    const utf8proc_category_t found = category(character);
    return found >= UTF8PROC_CATEGORY_ND && found <= UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t character) {  // \p{P}
    const utf8proc_category_t found = category(character);
    return found >= UTF8PROC_CATEGORY_PC && found <= UTF8PROC_CATEGORY_PO;
}

bool is_symbol(char32_t character) {  // \p{S}
    const utf8proc_category_t found = category(character);
    return found >= UTF8PROC_CATEGORY_SM && found <= UTF8PROC_CATEGORY_SO;
}

std::u32string replaced(std::u32string text,
                        std::u32string_view found,
                        std::u32string_view replacement) {
    for (std::size_t at = text.find(found); at != std::u32string::npos;
         at = text.find(found, at + replacement.size()))
        text.replace(at, found.size(), replacement);
    return text;
}

template <class IsSeparate>
std::u32string with_blanks_around(const std::u32string& text, IsSeparate is_separate) {
    std::u32string result;
    result.reserve(text.size() + text.size() / 2);
    for (const char32_t character : text) {
        if (is_separate(character))
            result += {U' ', character, U' '};
        else
            result += character;
    }
    return result;
}

// Where the blanks go in a pair of characters: before and between them, or between and after.
enum class PairBlanks { before_and_between, between_and_after };

// As re.sub does it: from left to right, and pairs do not overlap.
template <class IsFirst, class IsSecond>
std::u32string with_blanks_in_pairs(const std::u32string& text,
                                    IsFirst is_first,
                                    IsSecond is_second,
                                    PairBlanks blanks) {
    std::u32string result;
    result.reserve(text.size() + text.size() / 2);
    std::size_t at = 0;
    while (at < text.size()) {
        if (at + 1 == text.size() || !is_first(text[at]) || !is_second(text[at + 1])) {
            result += text[at++];
            continue;
        }
        if (blanks == PairBlanks::before_and_between)
            result += {U' ', text[at], U' ', text[at + 1]};
        else
            result += {text[at], U' ', text[at + 1], U' '};
        at += 2;
    }
    return result;
}

template <class Predicate>
auto no(Predicate is_true) {
    return [is_true](char32_t character) { return !is_true(character); };
}

std::u32string tokenized_13a(std::u32string_view segment) {
    std::u32string text = replaced(std::u32string(segment), U"<skipped>", U"");
    text = replaced(std::move(text), U"-\n", U"");
    text = replaced(std::move(text), U"&quot;", U"\"");
    text = replaced(std::move(text), U"&amp;", U"&");
    text = replaced(std::move(text), U"&lt;", U"<");
    text = replaced(std::move(text), U"&gt;", U">");
    text = with_blanks_around(U' ' + text + U' ', is_separate_in_13a);
    text =
        with_blanks_in_pairs(text, no(is_digit), is_period_or_comma, PairBlanks::between_and_after);
    text = with_blanks_in_pairs(
        text, is_period_or_comma, no(is_digit), PairBlanks::before_and_between);
    return with_blanks_in_pairs(
        text, is_digit, [](char32_t c) { return c == '-'; }, PairBlanks::between_and_after);
}

std::u32string tokenized_intl(std::u32string_view segment) {
    std::u32string text = with_blanks_in_pairs(
        std::u32string(segment), no(is_numeric), is_punctuation, PairBlanks::between_and_after);
    text =
        with_blanks_in_pairs(text, is_punctuation, no(is_numeric), PairBlanks::before_and_between);
    return with_blanks_around(text, is_symbol);
}

}  // namespace

const std::vector<std::string>& bleu_tokenizer_names() {
    static const std::vector<std::string> names{"13a", "none", "intl", "char"};
    return names;
}

std::u32string tokenized(std::u32string_view segment, BleuTokenizer tokenizer) {
    switch (tokenizer) {
        case BleuTokenizer::mteval_13a:
            return tokenized_13a(segment);
        case BleuTokenizer::none:
            return std::u32string(segment);
        case BleuTokenizer::intl:
            return tokenized_intl(segment);
        case BleuTokenizer::characters:
            return with_blanks_around(std::u32string(segment), [](char32_t) { return true; });
    }
    throw InternalError("a tokenizer has no rules");
}

}  // namespace hetseq
