#pragma once

#include <memory>

#include "hetseq/state/run_listener.hpp"

#include "python_task.hpp"

namespace hetseq {

/// Tells the task's callbacks of a run. They run in a thread of Python's, so that the trainer waits
/// for them at the end alone. Null where there are none.
std::shared_ptr<RunListener> make_python_listener(const PythonTask& task);

}  // namespace hetseq
