#pragma once

namespace hetseq {

/// For the end of a job of which some host cannot be reached: mpirun would wait for that host's
/// daemon until the kernel gives its connection up, a quarter of an hour later. Leaves a process
/// behind that kills the launcher of this one (mpirun, or its daemon on this host) where that is
/// still there after six seconds. Does nothing in a process that no mpirun started.
void end_launcher_if_stuck();

}  // namespace hetseq
