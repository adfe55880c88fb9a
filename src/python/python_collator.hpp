#pragma once

#include <memory>

#include "hetseq/data/loading/collator.hpp"

#include "python_task.hpp"

namespace hetseq {

/// Makes micro-batches for the user's task. A field arrives under its name: (n, row shape...); a
/// ragged one padded, (n, longest row), with its lengths under NAME_lengths, (n) int64. Python is
/// called for the task's own `collate` and `weights` only.
std::unique_ptr<Collator> make_python_collator(const PythonTask& task);

}  // namespace hetseq
