#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/text/vocabulary.hpp"

#include "app/lines/ordered_lines.hpp"
#include "batch_messages.hpp"

namespace hetseq {

struct TextOptions {
    std::int64_t max_positions = 1024;  // of a source, the end symbol counted
    std::int64_t hypotheses = 1;        // lines that are written for each line
    bool print_scores = false;
    BatchCaps caps;
    std::int64_t window = 2048;  // lines that are sorted by length
};

/// Lines on their way through a translator.
class TextTranslation : public OrderedLines<TranslationBatch, &TranslationBatch::sources> {
public:
    using Result = TranslatedBatch;

    TextTranslation(const Vocabulary& source, const Vocabulary& target, const TextOptions& options)
        : OrderedLines{options.caps, options.window},
          source_{source},
          target_{target},
          options_{options} {}

    void add(const std::string& line);
    void put(const TranslatedBatch& batch);
    static TranslatedBatch result_from_bytes(const std::string& bytes) {
        return translated_from_bytes(bytes);
    }

    std::int64_t tokens() const { return tokens_; }  // of best translations, end symbols counted

private:
    std::string text_of(const std::vector<Hypothesis>& hypotheses);

    const Vocabulary& source_;
    const Vocabulary& target_;
    const TextOptions& options_;
    std::int64_t tokens_ = 0;
};

}  // namespace hetseq
