#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "batches.hpp"

#include "hetseq/text/vocabulary.hpp"

namespace hetseq {

struct TextOptions {
    std::int64_t max_positions = 1024;  // of a source, the end symbol counted
    std::int64_t hypotheses = 1;        // lines that are written for each line
    bool print_scores = false;
    BatchCaps caps;
    std::int64_t window = 2048;  // lines that are sorted by length
};

/// Text on its way through a translator: lines come in, batches go out, translated batches come in,
/// and lines go out in the order of the input. What is held at once is bounded.
class TextTranslation {
public:
    using Batch = TranslationBatch;
    using Result = TranslatedBatch;

    TextTranslation(const Vocabulary& source, const Vocabulary& target, const TextOptions& options)
        : source_{source}, target_{target}, options_{options} {}

    /// False while enough lines are on their way.
    bool wants_lines() const { return lines_ - written_ < 2 * options_.window; }
    void add(const std::string& line);
    /// Cuts a full window into batches; with `all`, lines that fill none too.
    void cut(bool all);

    bool has_batch() const { return !batches_.empty(); }
    bool has_uncut_lines() const { return !window_.empty(); }
    TranslationBatch take_batch();
    void put(const TranslatedBatch& batch);
    static TranslatedBatch result_from_bytes(const std::string& bytes) {
        return translated_from_bytes(bytes);
    }
    /// Appends the lines that are next in the output, with their ends.
    void write(std::string& out);
    /// True when all lines that were added are written.
    bool is_written() const { return written_ == lines_; }

    std::int64_t lines() const { return lines_; }
    std::int64_t written() const { return written_; }
    std::int64_t tokens() const { return tokens_; }  // of best translations, end symbols counted
    /// The share of the lines so far that is translated, by the tokens of their sources. What is
    /// written lags behind, because long sentences go first.
    double share_done() const {
        return source_tokens_ == 0
                   ? 1
                   : static_cast<double>(done_source_tokens_) / static_cast<double>(source_tokens_);
    }
    /// Lines that were longer than the model's positions, and the first of them (from 1).
    std::int64_t cut_lines() const { return cut_lines_; }
    std::int64_t first_cut_line() const { return first_cut_line_; }

private:
    struct Uncut {
        std::int64_t line;
        std::vector<std::int32_t> ids;
    };
    struct UnderWay {
        std::vector<std::int64_t> lines;  // by source
        std::int64_t source_tokens = 0;
    };
    std::string text_of(const std::vector<Hypothesis>& hypotheses);

    const Vocabulary& source_;
    const Vocabulary& target_;
    const TextOptions& options_;
    std::vector<Uncut> window_;
    std::deque<TranslationBatch> batches_;
    std::map<std::int64_t, UnderWay> under_way_;  // by batch
    std::map<std::int64_t, std::string> done_;    // by line
    std::int64_t next_batch_ = 0;
    std::int64_t lines_ = 0, written_ = 0, tokens_ = 0;
    std::int64_t source_tokens_ = 0, done_source_tokens_ = 0;
    std::int64_t cut_lines_ = 0, first_cut_line_ = 0;
};

}  // namespace hetseq
