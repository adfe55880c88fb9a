#pragma once

#include <string>

namespace hetseq {

/// For the end of a job that has lost a host. mpirun would wait for that host's daemon until the
/// kernel gives up the connection, a quarter of an hour later. This leaves a process behind that
/// kills the launcher of this one (mpirun, or its daemon on this host) if it still runs after six
/// seconds. Does nothing in a process that mpirun did not start.
void end_launcher_if_stuck();

/// Whether mpirun, or its daemon on this host, started this process.
bool was_started_by_mpirun();

/// The terminal on which mpirun shows this process's standard error, such as "/dev/pts/3" (mpirun
/// reads it through a pipe). Empty if mpirun writes to something else or is on another host.
std::string terminal_of_launcher();

}  // namespace hetseq
