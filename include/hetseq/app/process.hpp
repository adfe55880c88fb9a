#pragma once

namespace hetseq {

/// First in `main`: keeps large tensors' memory in the process instead of giving it back at every
/// free (docs/performance.md).
void keep_freed_memory();

/// When this process was started, on the monotonic clock [s].
double process_start_seconds();

}  // namespace hetseq
