#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hetseq/text/bert/bert_tokenizer.hpp"

namespace hetseq {

/// A sentence as BERT takes it.
struct WordPieces {
    std::vector<std::int32_t> ids;    // [CLS], the words' pieces, [SEP]
    std::vector<std::int32_t> words;  // for each word, the place of its first piece in `ids`
};

/// Divides the words of a sentence into pieces, each word by itself.
class WordEncoder {
public:
    /// `max_length`: the most ids of a sentence, at least 3. Throws BadData where the vocabulary
    /// lacks [CLS] or [SEP].
    WordEncoder(const WordPiece& pieces,
                const BasicTokenizerOptions& options,
                std::int64_t max_length);

    /// A word of which nothing is left (a control character) is [UNK]. Of a sentence that is too
    /// long, words are left out from the first one that does not fit; they are missing in `words`.
    WordPieces encode(std::span<const std::string> words);

private:
    BertTokenizer tokenizer_;
    std::int32_t begin_, end_;
    std::size_t max_length_;
};

}  // namespace hetseq
