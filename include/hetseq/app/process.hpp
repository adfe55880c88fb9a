#pragma once

namespace hetseq {

/// To be called first in `main`. Keeps the memory of large tensors in the process instead of giving
/// it back at every free (docs/performance.md).
void keep_freed_memory();

/// When this process was started, on the monotonic clock [s].
double process_start_seconds();

/// Ends the process without destroying what is static. LibTorch would take some 3,000 operators out
/// of its tables one by one, 70 ms of CPU at each end of a program. What C streams hold is written.
[[noreturn]] void end_at_once(int exit_code);

}  // namespace hetseq
