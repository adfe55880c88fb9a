#pragma once

#include "hetseq/task/parts.hpp"

namespace hetseq {

/// The task "python" of the user's Python, with hetseq's optimizers and schedules. Throws BadConfig
/// where the task is wrong.
Parts python_task_parts();

}  // namespace hetseq
