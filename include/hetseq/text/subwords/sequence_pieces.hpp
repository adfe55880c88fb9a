#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hetseq/text/bert/bert_tokenizer.hpp"

namespace hetseq {

/// One sentence or two, as BERT takes them.
struct SequencePieces {
    std::vector<std::int32_t> ids;  // [CLS], pieces, [SEP]; of a pair more pieces and [SEP]
    std::int64_t second = 0;        // where the second sentence begins; without one ids' length
    std::int64_t cut = 0;           // pieces that did not fit
};

/// Divides sentences and pairs of sentences into pieces.
class SequenceEncoder {
public:
    /// `max_length`: the most ids, at least 5. Throws BadData where the vocabulary lacks [CLS] or
    /// [SEP].
    SequenceEncoder(const WordPiece& pieces,
                    const BasicTokenizerOptions& options,
                    std::int64_t max_length);

    /// Pieces that do not fit are left out at the end of the longer sentence, and of the second one
    /// where both are as long (google-research/bert, run_classifier.py).
    SequencePieces encode(std::string_view first,
                          const std::optional<std::string>& second = std::nullopt);

    std::int32_t unknown_id() const { return tokenizer_.pieces().unknown_id(); }

private:
    BertTokenizer tokenizer_;
    std::int32_t begin_, end_;
    std::int64_t max_length_;
};

}  // namespace hetseq
