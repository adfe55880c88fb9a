#pragma once

namespace hetseq {

/// First thing in `main`: a process that dies by SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT (an
/// exception nobody catches in a thread) says so on standard error first, with its program,
/// version, rank, host, phase and update, then takes the signal's default action: exit status, core
/// file and what mpirun does about it stay as they are. The report runs on a stack of its own, so
/// that the calling thread's overflow is reported too.
/// Throws InternalError when the system refuses.
void install_crash_report();

}  // namespace hetseq
