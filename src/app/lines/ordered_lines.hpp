#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"

#include "length_batches.hpp"

namespace hetseq {

/// Lines of text on their way through a model, for LineDispatcher: lines come in, batches of rows
/// of like length go out, and lines go out in the order of the input. What is held at once is
/// bounded. The base of a job that knows what rows and answers are: `add(line)`, `put(result)`, the
/// type Result and `result_from_bytes`.
///
/// `BatchType` has a `number` and, as its member `rows`, a vector.
template <class BatchType, auto rows>
class OrderedLines {
public:
    using Batch = BatchType;

    /// False while enough lines are on their way.
    bool wants_lines() const { return lines_ - written_ < 2 * window_size_; }
    /// Cuts a full window into batches; with `all`, lines that fill none too.
    void cut(bool all);

    bool has_batch() const { return !batches_.empty(); }
    bool has_uncut_lines() const { return !window_.empty(); }
    Batch take_batch();
    /// Appends the lines that are next in the output, with their ends.
    void write(std::string& out);
    /// True when all lines that were added are written.
    bool is_written() const { return written_ == lines_; }

    std::int64_t lines() const { return lines_; }
    std::int64_t written() const { return written_; }
    /// The share of the lines so far that is answered, by the lengths of their rows. What is
    /// written lags behind, because long rows go first.
    double share_done() const {
        return length_ == 0 ? 1 : static_cast<double>(done_length_) / static_cast<double>(length_);
    }
    /// Lines that were longer than the model's positions, and the first of them (from 1).
    std::int64_t cut_lines() const { return cut_lines_; }
    std::int64_t first_cut_line() const { return first_cut_line_; }

protected:
    using Row =
        typename std::remove_reference_t<decltype(std::declval<Batch&>().*rows)>::value_type;

    /// `window`: lines that are sorted by length.
    OrderedLines(const BatchCaps& caps, std::int64_t window) : caps_{caps}, window_size_{window} {}

    /// The number of a line that was added, from 0. `answer` or `enqueue` follows.
    std::int64_t begin_line() { return lines_++; }
    void note_cut(std::int64_t line) {
        if (cut_lines_++ == 0)
            first_cut_line_ = line + 1;
    }
    void enqueue(std::int64_t line, Row row, std::int64_t length);
    /// The text that is written for a line, with its end.
    void answer(std::int64_t line, std::string text) { answers_[line] = std::move(text); }
    /// The lines of a batch that came back with so many answers.
    std::vector<std::int64_t> lines_of(std::int64_t batch, std::size_t answers);

private:
    struct Uncut {
        std::int64_t line;
        Row row;
        std::int64_t length;
    };
    struct UnderWay {
        std::vector<std::int64_t> lines;  // by row
        std::int64_t length = 0;
    };

    BatchCaps caps_;
    std::int64_t window_size_;
    std::vector<Uncut> window_;
    std::deque<Batch> batches_;
    std::map<std::int64_t, UnderWay> under_way_;   // by batch
    std::map<std::int64_t, std::string> answers_;  // by line
    std::int64_t next_batch_ = 0;
    std::int64_t lines_ = 0, written_ = 0;
    std::int64_t length_ = 0, done_length_ = 0;
    std::int64_t cut_lines_ = 0, first_cut_line_ = 0;
};

template <class BatchType, auto rows>
void OrderedLines<BatchType, rows>::enqueue(std::int64_t line, Row row, std::int64_t length) {
    length_ += length;
    window_.push_back({line, std::move(row), length});
    cut(false);
}

template <class BatchType, auto rows>
void OrderedLines<BatchType, rows>::cut(bool all) {
    if (window_.empty() || (!all && std::ssize(window_) < window_size_))
        return;
    std::vector<std::int64_t> lengths;
    for (const Uncut& uncut : window_)
        lengths.push_back(uncut.length);
    for (const std::vector<std::size_t>& indices : cut_batches(lengths, caps_)) {
        Batch& batch = batches_.emplace_back();
        batch.number = next_batch_++;
        UnderWay& under_way = under_way_[batch.number];
        for (const std::size_t i : indices) {
            under_way.lines.push_back(window_[i].line);
            under_way.length += lengths[i];
            (batch.*rows).push_back(std::move(window_[i].row));
        }
    }
    window_.clear();
}

template <class BatchType, auto rows>
BatchType OrderedLines<BatchType, rows>::take_batch() {
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    return batch;
}

template <class BatchType, auto rows>
std::vector<std::int64_t> OrderedLines<BatchType, rows>::lines_of(std::int64_t batch,
                                                                  std::size_t answers) {
    const auto node = under_way_.extract(batch);
    HETSEQ_ASSERT(!node.empty() && node.mapped().lines.size() == answers);
    done_length_ += node.mapped().length;
    return std::move(node.mapped().lines);
}

template <class BatchType, auto rows>
void OrderedLines<BatchType, rows>::write(std::string& out) {
    for (; !answers_.empty() && answers_.begin()->first == written_; ++written_) {
        out += answers_.begin()->second;
        answers_.erase(answers_.begin());
    }
}

}  // namespace hetseq
