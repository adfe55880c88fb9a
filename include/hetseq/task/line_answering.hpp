#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetseq/data/loading/micro_batch.hpp"
#include "hetseq/data/prediction.hpp"
#include "hetseq/task/part_options.hpp"

namespace hetseq {

/// A line of text as a model takes it.
struct LineRow {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> marks;  // what else the model needs: places in `ids`, say
    std::int64_t size = 0;            // in `LineAnswering::unit`
    bool is_cut = false;              // the model takes less than the whole line
};

/// What a model says of a row.
struct LineAnswer {
    std::vector<std::int32_t> labels;
    std::vector<float> numbers{};
};

/// How `hetseq predict RUN < lines` takes lines of text through a model: a line becomes a row, rows
/// become a corpus's fields, the batching makes a micro-batch of them, and what
/// `Model::predict` says becomes a line again. `row_of` and `text_of` are called on rank 0, the
/// others on the rank that computes; rows and answers travel between ranks.
class LineAnswering {
public:
    virtual ~LineAnswering() = default;

    /// Nothing: the line is blank, and so is its answer. Throws BadData for a line that is none.
    virtual std::optional<LineRow> row_of(const std::string& line) = 0;
    /// The rows as a corpus gives them to the batching.
    virtual TensorDict fields_of(std::span<const LineRow> rows) const = 0;
    /// What the model said, by row.
    virtual std::vector<LineAnswer> answers_of(
        std::span<const LineRow> rows, const std::vector<Prediction>& predictions) const = 0;
    /// The text of an answer, without the line's end.
    virtual std::string text_of(const std::string& line, const LineAnswer& answer) const = 0;

    /// What lines consist of, in the singular: "word".
    virtual std::string unit() const = 0;
    /// What becomes of lines that are cut: "their ends were left out".
    virtual std::string note_on_cut() const = 0;
};

/// Makes it for the model of the run in `folder`, whose options are `options`.
using LinePart = std::function<std::unique_ptr<LineAnswering>(const std::filesystem::path& folder,
                                                              const PartOptions& options)>;

/// The ragged field `name` of these rows.
void put_ragged_field(TensorDict& fields,
                      const std::string& name,
                      std::span<const LineRow> rows,
                      std::vector<std::int32_t> LineRow::*values);

}  // namespace hetseq
