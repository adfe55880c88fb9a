#pragma once

namespace hetseq {

/// To be called first in `main`. Keeps the memory of large tensors in the process instead of giving
/// it back at every free (docs/performance.md).
void keep_freed_memory();

/// To be called before LibTorch computes. On a CPU it makes a kernel of oneDNN for each shape of a
/// product in 16 bits, and keeps up to 1,024 of them twice: 900 MiB. From now on up to 128, unless
/// the environment says how many (docs/memory.md).
void keep_few_kernels();

/// When this process was started, on the monotonic clock [s].
double process_start_seconds();

/// Ends the process without destroying what is static. LibTorch would take some 3,000 operators out
/// of its tables one by one, 70 ms of CPU at each end of a program. What C streams hold is written.
[[noreturn]] void end_at_once(int exit_code);

}  // namespace hetseq
