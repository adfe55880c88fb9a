#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hetseq/task/line_answering.hpp"

#include "app/lines/ordered_lines.hpp"

namespace hetseq {

/// Work that goes to a rank.
struct LineBatch {
    std::int64_t number = 0;
    std::vector<LineRow> rows;
};

/// What comes back.
struct AnsweredBatch {
    std::int64_t number = 0;
    std::vector<LineAnswer> answers;  // by row
};

/// As messages between ranks of one job, and back. Of a row, `ids` and `marks` alone travel.
std::string to_bytes(const LineBatch& batch);
std::string to_bytes(const AnsweredBatch& batch);
LineBatch line_batch_from_bytes(const std::string& bytes);
AnsweredBatch answers_from_bytes(const std::string& bytes);

/// Lines on their way through a model that answers them.
class AnsweredLines : public OrderedLines<LineBatch, &LineBatch::rows> {
public:
    using Result = AnsweredBatch;

    /// `window`: lines that are sorted by length.
    AnsweredLines(LineAnswering& answering, const BatchCaps& caps, std::int64_t window)
        : OrderedLines{caps, window}, answering_{answering} {}

    /// Throws BadData that names the line.
    void add(const std::string& line);
    void put(const AnsweredBatch& batch);
    static AnsweredBatch result_from_bytes(const std::string& bytes) {
        return answers_from_bytes(bytes);
    }

    /// "3 words"
    std::string size_text() const;
    std::string note_on_cut() const { return answering_.note_on_cut(); }

private:
    LineAnswering& answering_;
    std::map<std::int64_t, std::string> texts_;  // of lines under way
    std::int64_t size_ = 0;
};

}  // namespace hetseq
