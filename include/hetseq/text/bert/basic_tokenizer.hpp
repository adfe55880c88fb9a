#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hetseq/options/options_of.hpp"

namespace hetseq {

/// How BERT's text becomes words. The defaults are those of the uncased models.
struct BasicTokenizerOptions {
    bool lower_case = true;
    bool strip_accents = true;  // canonical decomposition (NFD) without nonspacing marks

    static BasicTokenizerOptions cased() { return {false, false}; }
};

/// --cased and --accents.
OptionsOf<BasicTokenizerOptions> basic_tokenizer_options();

/// Words in one string, with what each of their characters was made from.
struct BasicWords {
    std::u32string characters;           // of all words, one after the other
    std::vector<std::uint32_t> sources;  // for each, the place of its character in the text
    std::vector<std::size_t> ends;       // for each word, the place behind it in `characters`

    std::size_t size() const { return ends.size(); }
    std::size_t begin(std::size_t word) const { return word == 0 ? 0 : ends[word - 1]; }
    std::u32string_view word(std::size_t i) const {
        return std::u32string_view{characters}.substr(begin(i), ends[i] - begin(i));
    }
};

/// The BasicTokenizer of google-research's tokenization.py, equal to it for all texts: control
/// characters are dropped; blanks, punctuation and Chinese characters divide; case and accents go
/// as the options say. Follows that program step by step; BertTokenizer is the fast way.
class BasicTokenizer {
public:
    explicit BasicTokenizer(const BasicTokenizerOptions& options) : options_{options} {}

    const BasicTokenizerOptions& options() const { return options_; }

    /// The words of `text`, until the next call.
    const BasicWords& words(std::u32string_view text);

private:
    struct Character {
        char32_t value;
        std::uint32_t source;
    };

    void end_token();
    void lower();
    void decompose();
    void sort_marks();
    void divide_at_punctuation();

    BasicTokenizerOptions options_;
    std::vector<Character> token_, changed_;  // what stands between blanks
    BasicWords words_;
};

}  // namespace hetseq
