#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/loading/micro_batch.hpp"

#include "app/lines/length_batches.hpp"

namespace hetseq {

/// How lines of text get labels.
struct LabellingOptions {
    std::vector<std::string> labels;
    BatchCaps caps;
    std::int64_t window = 2048;  // lines that are sorted by length
};

/// A line of text as a model takes it.
struct TextRow {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> marks;  // places in `ids`: of words' first pieces, or where the
                                      // second text begins
};

/// Work that goes to a rank.
struct TextBatch {
    std::int64_t number = 0;
    std::vector<TextRow> rows;
};

/// What a model says of a row: a label for each word, or one with its probability, or a number.
struct TextAnswer {
    std::vector<std::int32_t> labels;
    std::vector<float> numbers{};
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

/// The ragged field `name` of these rows, as a corpus gives it to collators.
void put_ragged_field(TensorDict& fields,
                      const std::string& name,
                      const TextBatch& batch,
                      std::vector<std::int32_t> TextRow::*values);

}  // namespace hetseq
