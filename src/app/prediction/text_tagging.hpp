#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/ordered_lines.hpp"
#include "text_rows.hpp"

#include "hetseq/text/word_pieces.hpp"

namespace hetseq {

struct TaggingOptions {
    std::vector<std::string> labels;
    BatchCaps caps;
    std::int64_t window = 2048;  // lines that are sorted by length
};

/// Lines of words on their way through a token classifier. A line that goes out has each word, a
/// blank and its label, with tabs between them.
class TextTagging : public OrderedLines<TextBatch, &TextBatch::rows> {
public:
    using Result = AnsweredBatch;

    TextTagging(WordEncoder encoder, const TaggingOptions& options)
        : OrderedLines{options.caps, options.window},
          encoder_{std::move(encoder)},
          options_{options} {}

    void add(const std::string& line);
    void put(const AnsweredBatch& batch);
    static AnsweredBatch result_from_bytes(const std::string& bytes) {
        return answers_from_bytes(bytes);
    }

    std::int64_t words() const { return words_; }

private:
    WordEncoder encoder_;
    const TaggingOptions& options_;
    std::map<std::int64_t, std::vector<std::string>> words_of_;  // by line
    std::int64_t words_ = 0;
};

}  // namespace hetseq
