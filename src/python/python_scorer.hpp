#pragma once

#include <memory>

#include "hetseq/model/model.hpp"

namespace hetseq {

/// Computes what the task's `metric` says of the predictions of a whole corpus. Each rank keeps the
/// predictions and targets of its samples; rank 0 puts them in the order of the corpus, and asks.
/// One scorer keeps at a time. `model`, a task's in Python, outlives it.
std::unique_ptr<CorpusScorer> make_python_scorer(Model& model);

}  // namespace hetseq
