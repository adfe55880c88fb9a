#include "hetseq/text/bert/basic_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/text/code_points.hpp"
#include "hetseq/text/lower_case.hpp"

#include <utf8proc.h>

namespace hetseq {

namespace {

constexpr char32_t replacement_character = 0xfffd;
constexpr char32_t dotted_capital_i = 0x130;
constexpr char32_t first_decomposed = 0xc0;  // none before it has a canonical decomposition

utf8proc_category_t general_category(char32_t character) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

// _is_control: tabs and line ends count as blanks.
bool is_bert_control(char32_t character) {
    if (character == '\t' || character == '\n' || character == '\r')
        return false;
    const utf8proc_category_t category = general_category(character);
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF;
}

bool is_dropped(char32_t character) {
    return character == 0 || character == replacement_character || is_bert_control(character);
}

// _is_punctuation: in ASCII all that is no letter, digit or blank.
bool is_bert_punctuation(char32_t character) {
    if (character < 0x80)
        return (character >= 33 && character <= 47) || (character >= 58 && character <= 64) ||
               (character >= 91 && character <= 96) || (character >= 123 && character <= 126);
    const utf8proc_category_t category = general_category(character);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

// _is_chinese_char: the blocks of ideographs that were there when BERT was written.
bool is_chinese(char32_t character) {
    constexpr std::array<std::pair<char32_t, char32_t>, 8> blocks{{{0x3400, 0x4dbf},
                                                                   {0x4e00, 0x9fff},
                                                                   {0xf900, 0xfaff},
                                                                   {0x20000, 0x2a6df},
                                                                   {0x2a700, 0x2b73f},
                                                                   {0x2b740, 0x2b81f},
                                                                   {0x2b820, 0x2ceaf},
                                                                   {0x2f800, 0x2fa1f}}};
    return character >= blocks.front().first &&
           std::any_of(blocks.begin(), blocks.end(), [&](const auto& block) {
               return character >= block.first && character <= block.second;
           });
}

int combining_class(char32_t character) {
    return utf8proc_get_property(static_cast<utf8proc_int32_t>(character))->combining_class;
}

}  // namespace

const BasicWords& BasicTokenizer::words(std::u32string_view text) {
    words_.characters.clear();
    words_.sources.clear();
    words_.ends.clear();
    token_.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char32_t character = text[i];
        if (is_dropped(character))
            continue;
        const bool stands_alone = is_chinese(character);
        if (stands_alone || is_blank(character))
            end_token();
        if (!is_blank(character))
            token_.push_back({character, static_cast<std::uint32_t>(i)});
        if (stands_alone)
            end_token();
    }
    end_token();
    return words_;
}

void BasicTokenizer::end_token() {
    if (token_.empty())
        return;
    if (options_.lower_case)
        lower();
    if (options_.strip_accents)
        decompose();
    divide_at_punctuation();
    token_.clear();
}

// str.lower(): one character gives one, but for the capital I with a dot.
void BasicTokenizer::lower() {
    std::u32string token;
    for (const Character& character : token_)
        token += character.value;
    const std::u32string lower = lower_case(token);
    changed_.clear();
    std::size_t at = 0;
    for (const Character& character : token_)
        for (int count = character.value == dotted_capital_i ? 2 : 1; count > 0; --count)
            changed_.push_back({lower[at++], character.source});
    HETSEQ_ASSERT(at == lower.size());
    token_.swap(changed_);
}

// unicodedata.normalize("NFD") without what is of category Mn.
void BasicTokenizer::decompose() {
    constexpr utf8proc_ssize_t most = 32;  // of one character; the longest has four
    changed_.clear();
    for (const Character& character : token_) {
        std::array<utf8proc_int32_t, most> parts{static_cast<utf8proc_int32_t>(character.value)};
        utf8proc_ssize_t count = 1;
        if (character.value >= first_decomposed)
            count =
                utf8proc_decompose_char(parts[0], parts.data(), most, UTF8PROC_DECOMPOSE, nullptr);
        HETSEQ_ASSERT(count > 0 && count <= most);
        for (utf8proc_ssize_t i = 0; i < count; ++i)
            changed_.push_back(
                {static_cast<char32_t>(parts[static_cast<std::size_t>(i)]), character.source});
    }
    sort_marks();
    std::erase_if(changed_, [](const Character& character) {
        return general_category(character.value) == UTF8PROC_CATEGORY_MN;
    });
    token_.swap(changed_);
}

// Canonical order: marks in a row stand in the order of their combining classes.
void BasicTokenizer::sort_marks() {
    const auto is_mark = [](const Character& character) {
        return character.value >= first_decomposed && combining_class(character.value) != 0;
    };
    auto at = changed_.begin();
    while (at != changed_.end()) {
        at = std::find_if(at, changed_.end(), is_mark);
        const auto end = std::find_if_not(at, changed_.end(), is_mark);
        std::stable_sort(at, end, [](const Character& a, const Character& b) {
            return combining_class(a.value) < combining_class(b.value);
        });
        at = end;
    }
}

void BasicTokenizer::divide_at_punctuation() {
    const auto end_word = [this] {
        if (words_.characters.size() > words_.begin(words_.size()))
            words_.ends.push_back(words_.characters.size());
    };
    for (const Character& character : token_) {
        const bool stands_alone = is_bert_punctuation(character.value);
        if (stands_alone)
            end_word();
        words_.characters += character.value;
        words_.sources.push_back(character.source);
        if (stands_alone)
            end_word();
    }
    end_word();
}

}  // namespace hetseq
