#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hetseq/text/bert/basic_tokenizer.hpp"

namespace hetseq {

/// How often each of BERT's words occurs in a text.
class BertWordCounts {
public:
    using Words = std::vector<std::pair<std::string, std::int64_t>>;

    explicit BertWordCounts(const BasicTokenizerOptions& options) : options_{options} {}

    void add_line(std::string_view line);

    /// In the order of their bytes.
    Words words() const;

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept {
            return std::hash<std::string_view>{}(text);
        }
    };

    BasicTokenizerOptions options_;
    // What stands between ASCII blanks. It is divided into words once, however often it occurs.
    std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> counts_;
};

struct WordPieceTrainingOptions {
    std::int64_t pieces = 30000;          // at most, special pieces and characters included
    std::int64_t least_count = 2;         // of two neighbours that become a piece
    std::int64_t most_characters = 1000;  // rarer ones are left out of the words
};

/// A vocabulary of WordPiece for `words`, as the trainer of Hugging Face's tokenizers makes one:
/// special pieces, characters, then the most frequent pair of neighbouring pieces joined, again and
/// again. Of equally frequent pairs the one of the earlier pieces is taken, so that the same words
/// give the same vocabulary. Throws BadData where the text has no words or more characters than
/// there may be pieces.
std::vector<std::string> train_wordpiece(const BertWordCounts::Words& words,
                                         const WordPieceTrainingOptions& options);

}  // namespace hetseq
