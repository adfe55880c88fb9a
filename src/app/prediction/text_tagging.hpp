#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "app/length_batches.hpp"
#include "text_rows.hpp"

#include "hetseq/text/word_pieces.hpp"

namespace hetseq {

struct TaggingOptions {
    std::vector<std::string> labels;
    BatchCaps caps;
    std::int64_t window = 2048;  // lines that are sorted by length
};

/// Lines of words on their way through a token classifier, for LineDispatcher: lines come in,
/// batches go out, answers come in, and lines go out in the order of the input. A line that goes
/// out has each word, a blank and its label, with tabs between them.
class TextTagging {
public:
    using Batch = TextBatch;
    using Result = AnsweredBatch;

    TextTagging(WordEncoder encoder, const TaggingOptions& options)
        : encoder_{std::move(encoder)}, options_{options} {}

    /// False while enough lines are on their way.
    bool wants_lines() const { return lines_ - written_ < 2 * options_.window; }
    void add(const std::string& line);
    /// Cuts a full window into batches; with `all`, lines that fill none too.
    void cut(bool all);

    bool has_batch() const { return !batches_.empty(); }
    bool has_uncut_lines() const { return !window_.empty(); }
    TextBatch take_batch();
    void put(const AnsweredBatch& batch);
    static AnsweredBatch result_from_bytes(const std::string& bytes) {
        return answers_from_bytes(bytes);
    }
    /// Appends the lines that are next in the output, with their ends.
    void write(std::string& out);
    /// True when all lines that were added are written.
    bool is_written() const { return written_ == lines_; }

    std::int64_t lines() const { return lines_; }
    std::int64_t written() const { return written_; }
    std::int64_t words() const { return words_; }
    /// Lines with words that the model has no positions for, and the first of them (from 1).
    std::int64_t cut_lines() const { return cut_lines_; }
    std::int64_t first_cut_line() const { return first_cut_line_; }

private:
    struct Uncut {
        std::int64_t line;
        TextRow row;
    };

    WordEncoder encoder_;
    const TaggingOptions& options_;
    std::vector<Uncut> window_;
    std::deque<TextBatch> batches_;
    std::map<std::int64_t, std::vector<std::int64_t>> under_way_;  // lines, by batch
    std::map<std::int64_t, std::vector<std::string>> words_of_;    // by line
    std::map<std::int64_t, std::string> done_;                     // by line
    std::int64_t next_batch_ = 0;
    std::int64_t lines_ = 0, written_ = 0, words_ = 0;
    std::int64_t cut_lines_ = 0, first_cut_line_ = 0;
};

}  // namespace hetseq
