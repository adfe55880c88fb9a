#pragma once

namespace hetseq {

/// To be called first in `main`. From then on, a process that dies by SIGSEGV, SIGBUS, SIGFPE,
/// SIGILL or SIGABRT (an exception that no thread catches) first says so on standard error, with
/// its program, version, rank, host, phase and update. Then the signal's default action follows, so
/// exit status, core file and mpirun's reaction stay the same. The report runs on its own stack, so
/// that an overflow of the calling thread's stack is reported too. Throws InternalError when the
/// system refuses.
void install_crash_report();

}  // namespace hetseq
