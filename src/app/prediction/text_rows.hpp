#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/micro_batch.hpp"

namespace hetseq {

/// A line of text as a model takes it.
struct TextRow {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> marks;  // places in `ids`: of words' first pieces
};

/// Work that goes to a rank.
struct TextBatch {
    std::int64_t number = 0;
    std::vector<TextRow> rows;
};

/// What a model says of a row: a label for each mark.
struct TextAnswer {
    std::vector<std::int32_t> labels;
};

/// What comes back.
struct AnsweredBatch {
    std::int64_t number = 0;
    std::vector<TextAnswer> answers;  // by row
};

/// As messages between ranks of one job, and back.
std::string to_bytes(const TextBatch& batch);
std::string to_bytes(const AnsweredBatch& batch);
TextBatch text_batch_from_bytes(const std::string& bytes);
AnsweredBatch answers_from_bytes(const std::string& bytes);

/// The rows as a corpus gives them to collators: ragged fields "input_ids" and `marks`.
TensorDict rows_of_corpus(const TextBatch& batch, const std::string& marks);

}  // namespace hetseq
