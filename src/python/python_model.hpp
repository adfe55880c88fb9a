#pragma once

#include <memory>

#include "hetseq/model/model.hpp"
#include "hetseq/task/part_options.hpp"

#include "python_task.hpp"

namespace hetseq {

/// The module that the user's `model` makes, as the trainer sees it: its parameters are the very
/// tensors of the Python module, under the names that they have there.
std::shared_ptr<Model> make_python_model(const PythonTask& task, const PartOptions& options);

}  // namespace hetseq
