#pragma once

#include <string>

namespace hetseq {

/// For the end of a job of which some host cannot be reached: mpirun would wait for that host's
/// daemon until the kernel gives its connection up, a quarter of an hour later. Leaves a process
/// behind that kills the launcher of this one (mpirun, or its daemon on this host) where that is
/// still there after six seconds. Does nothing in a process that no mpirun started.
void end_launcher_if_stuck();

/// Whether mpirun, or its daemon on this host, started this process.
bool was_started_by_mpirun();

/// The terminal on which mpirun shows this process's standard error, which it reads through a pipe:
/// "/dev/pts/3". Empty where mpirun writes to something else or is on another host.
std::string terminal_of_launcher();

}  // namespace hetseq
