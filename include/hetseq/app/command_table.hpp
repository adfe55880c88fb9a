#pragma once

#include <string>
#include <vector>

#include "hetseq/app/commands.hpp"

namespace hetseq {

/// always: the command trains or measures on ranks; a single process is a job of one rank.
/// launched: MPI only when started as ranks. never: a single process's work.
enum class NeedsMpi { always, launched, never };

struct CommandEntry {
    std::string name;
    std::string usage;  // what follows "hetseq"; the completion reads it too (command_usage.hpp)
    std::string help;
    NeedsMpi needs_mpi;
    int (*run)(const CommandContext&);
    bool takes_options = true;    // those of the option table
    bool takes_requests = false;  // signals are requests, not the process's end
};

/// The one table of commands.
const std::vector<CommandEntry>& command_table();

}  // namespace hetseq
