#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

/// What a run of the program came to.
struct ProgramEnd {
    std::int64_t code = 0;  // exit code
    std::string message;    // of the error that ended it; empty where there is none
};

/// Runs the program with these words (a command first), with the user's task or the built-in ones.
/// MPI runs as long as the command does, and signals are the program's.
ProgramEnd run_as_program(const std::vector<std::string>& words, bool has_task);

/// The same as a call of a script that goes on afterwards: MPI runs until `end_mpi`, and the
/// handlers of signals are put back.
ProgramEnd run_in_script(const std::vector<std::string>& words, bool has_task);

/// Ends MPI where `run_in_script` started it. Collective.
void end_mpi();

/// Ends all ranks with this exit code where `run_in_script` started MPI.
void abort_mpi(std::int64_t code);

/// The rank that the launcher's environment gives this process; 0 without one.
std::int64_t launched_rank();

}  // namespace hetseq
