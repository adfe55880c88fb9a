#pragma once

namespace hetseq {

/// To be called first in `main`. Keeps the memory of large tensors in the process instead of giving
/// it back at every free (docs/performance.md).
void keep_freed_memory();

/// When this process was started, on the monotonic clock [s].
double process_start_seconds();

}  // namespace hetseq
