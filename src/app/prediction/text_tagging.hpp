#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/text/subwords/word_pieces.hpp"
#include "hetseq/model/model.hpp"

#include "app/lines/ordered_lines.hpp"
#include "text_rows.hpp"

namespace hetseq {

/// Lines of words on their way through a token classifier. A line that goes out has each word, a
/// blank and its label, with tabs between them.
class TextTagging : public OrderedLines<TextBatch, &TextBatch::rows> {
public:
    using Result = AnsweredBatch;

    TextTagging(WordEncoder encoder, const LabellingOptions& options)
        : OrderedLines{options.caps, options.window},
          encoder_{std::move(encoder)},
          options_{options} {}

    void add(const std::string& line);
    void put(const AnsweredBatch& batch);
    static AnsweredBatch result_from_bytes(const std::string& bytes) {
        return answers_from_bytes(bytes);
    }

    /// The rows as a corpus gives them to the task's collator.
    static TensorDict fields_of(const TextBatch& batch);
    /// What the model said of each row.
    static std::vector<TextAnswer> answers_of(const TextBatch& batch,
                                              const std::vector<Prediction>& predictions);

    /// "3 words" and what was lost of a line that was cut.
    std::string size_text() const;
    static constexpr const char* what_is_cut = "the words that did not fit have the label ?";

private:
    WordEncoder encoder_;
    const LabellingOptions& options_;
    std::map<std::int64_t, std::vector<std::string>> words_of_;  // by line
    std::int64_t words_ = 0;
};

}  // namespace hetseq
