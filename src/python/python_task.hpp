#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/options/option.hpp"
#include "hetseq/data/schema.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/task/part_options.hpp"

namespace hetseq {

/// What one loss of a task is divided by, where no Python is needed to tell.
struct WeightRule {
    enum class Kind { samples, tokens };
    Kind kind = Kind::samples;
    std::string field{};  // tokens: the ragged field whose positions are counted
};

/// A value that is computed from the predictions of a whole validation.
struct ScoreSchema {
    std::string name;
    bool is_share = false;  // between 0 and 1, shown in percent
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
    std::vector<ScoreSchema> scores;  // of Python's `metric`, over all predictions
    std::vector<std::string> events;  // of a run that Python's callbacks hear of
    std::vector<WeightRule> weights;  // by loss; empty: Python's `weights` tells
    bool collates = false;            // Python makes the micro-batches of the rows
    bool makes_samples = false;       // in processes of its own, that want to know of them early
    bool transforms = false;          // by Python's `transform`
    bool reads_dataset = false;       // data may be a split of a dataset in Python
    bool predicts = false;            // Python's `predict` makes predictions
    bool is_exact = true;             // results do not depend on how batches are cut
    bool has_optimizer = false;       // Python's `optimizer` makes one
    bool has_schedule = false;        // Python's `schedule` gives the learning rate
    std::vector<Option<std::string>> options;
    std::vector<std::pair<std::string, std::string>> defaults;  // of options of the program
};

/// Asks the Python package. Throws BadConfig with the traceback where the task is wrong.
PythonTask describe_python_task();

/// The user's choices, as JSON, as the Python package takes them.
std::string python_choices(const PartOptions& options);

}  // namespace hetseq
