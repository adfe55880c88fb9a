#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/options/option.hpp"
#include "hetseq/data/schema.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

/// What one loss of a task is divided by, where no Python is needed to tell.
struct WeightRule {
    enum class Kind { samples, tokens };
    Kind kind = Kind::samples;
    std::string field{};  // tokens: the ragged field whose positions are counted
};

/// How a field's rows arrive in a batch.
struct RowForm {
    /// Of a ragged field: what its values are, -1 where rows may differ; empty: bytes, which stay
    /// as they are.
    std::vector<std::int64_t> shape{};
    double padding = 0;  // stands behind the shorter rows of a ragged field
};

/// The dataset that has the rows' shapes where several of their dimensions differ: "NAME_shape".
std::string shape_name(const std::string& name);

/// What the Python package says of the user's task, before any model or data is there.
struct PythonTask {
    CorpusSchema schema;
    std::vector<RowForm> forms;  // by field of the schema
    std::vector<std::string> losses;
    std::vector<MetricSchema> metrics;
    std::vector<WeightRule> weights;  // by loss; empty: Python's `weights` tells
    bool collates = false;            // Python's `collate` makes the micro-batches
    bool predicts = false;            // Python's `predict` makes predictions
    bool is_exact = true;             // results do not depend on how batches are cut
    bool has_optimizer = false;       // Python's `optimizer` makes one
    bool has_schedule = false;        // Python's `schedule` gives the learning rate
    std::vector<Option<std::string>> options;
    std::vector<std::pair<std::string, std::string>> defaults;  // of options of the program
};

/// Asks the Python package. Throws BadConfig with the traceback where the task is wrong.
PythonTask describe_python_task();

}  // namespace hetseq
