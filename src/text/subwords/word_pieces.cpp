#include "hetseq/text/subwords/word_pieces.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

WordEncoder::WordEncoder(const WordPiece& pieces,
                         const BasicTokenizerOptions& options,
                         std::int64_t max_length)
    : tokenizer_{pieces, {.basic = options}},
      begin_{pieces.id_of("[CLS]")},
      end_{pieces.id_of("[SEP]")},
      max_length_{static_cast<std::size_t>(max_length)} {
    HETSEQ_ASSERT(max_length >= 3);
}

WordPieces WordEncoder::encode(std::span<const std::string> words) {
    const std::int32_t unknown = tokenizer_.pieces().unknown_id();
    WordPieces row;
    row.ids.push_back(begin_);
    for (const std::string& word : words) {
        std::span<const std::int32_t> ids = tokenizer_.encode(word);
        if (ids.empty())
            ids = {&unknown, 1};
        // A first word longer than a sentence may be keeps the pieces that fit.
        if (row.words.empty())
            ids = ids.first(std::min(ids.size(), max_length_ - 2));
        if (row.ids.size() + ids.size() + 1 > max_length_)
            break;
        row.words.push_back(static_cast<std::int32_t>(row.ids.size()));
        row.ids.insert(row.ids.end(), ids.begin(), ids.end());
    }
    row.ids.push_back(end_);
    return row;
}

}  // namespace hetseq
