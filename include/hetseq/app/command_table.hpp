#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hetseq/command_line/command_description.hpp"
#include "hetseq/app/commands.hpp"

namespace hetseq {

/// always: the command trains or measures on ranks; a single process is a job of one rank.
/// launched: uses MPI only if it was started as ranks. never: works in a single process.
enum class NeedsMpi { always, launched, never };

struct CommandEntry {
    CommandDescription description;
    NeedsMpi needs_mpi;
    std::function<int(const CommandContext&)> run;
    bool takes_requests = false;  // signals are requests, not the process's end
};

/// The one table of commands.
const std::vector<CommandEntry>& command_table();

/// Throws BadUsage with the nearest name if no command has this one.
const CommandEntry& find_command(const std::string& name);

}  // namespace hetseq
