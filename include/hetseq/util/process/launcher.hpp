#pragma once

#include <string>
#include <vector>

namespace hetseq {

/// For the end of a job that has lost a host. mpirun would wait for that host's daemon until the
/// kernel gives up the connection, a quarter of an hour later. This leaves a process behind that
/// kills the launcher of this one (mpirun, or its daemon on this host) if it still runs after
/// `patience_s` seconds. Does nothing in a process that mpirun did not start.
void end_launcher_if_stuck(unsigned patience_s);

/// Whether mpirun, or its daemon on this host, started this process.
bool was_started_by_mpirun();

/// A rank that stands still, by SIGSTOP.
struct StoppedRank {
    int rank = 0;
    int process = 0;
};

/// Those that the launcher of this process started on this host.
std::vector<StoppedRank> stopped_ranks_here();

/// The terminal on which mpirun shows this process's standard error, such as "/dev/pts/3" (mpirun
/// reads it through a pipe). Empty if mpirun writes to something else or is on another host.
std::string terminal_of_launcher();

}  // namespace hetseq
