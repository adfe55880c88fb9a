#pragma once

#include <memory>

#include "hetseq/data/loading/collator.hpp"

#include "python_task.hpp"

namespace hetseq {

/// Makes micro-batches for the user's task. A field arrives under its name: (n, row shape...); a
/// ragged one padded, (n, the largest of each dimension), with its lengths under NAME_lengths, (n)
/// int64, or, where several dimensions are unequal, its rows' shapes under NAME_shape. Bytes go to
/// the task's own `collate` as stored. Python is called for `collate` and `weights` only.
std::unique_ptr<Collator> make_python_collator(const PythonTask& task);

}  // namespace hetseq
