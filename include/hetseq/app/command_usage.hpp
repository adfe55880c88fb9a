#pragma once

#include <string>
#include <vector>

namespace hetseq {

/// What a command's usage line says, for the completion.
struct CommandUsage {
    struct Option {
        std::string name;   // "--shards"
        std::string value;  // as the line names it: "N"; empty for a switch
    };

    std::vector<std::string> words;      // one of them follows the command: "data", "step"
    std::vector<std::string> arguments;  // "CONFIG.cfg", "RUN"
    std::vector<Option> options;
};

/// Reads "NAME [WORD|WORD...] ARGUMENT... --option VALUE [--switch]" as command_table.cpp has it:
/// words in lower case, names of values in upper case, switches in brackets, "--OPTION VALUE" for
/// those of the option table.
CommandUsage read_usage(const std::string& usage);

enum class ValueKind { any, file, configuration, folder };

/// What a value is by the name that help has for it: "PATH" and "NAME|FILE" a file, "CONFIG.cfg" a
/// configuration, "DIR" and "RUN" a folder.
ValueKind value_kind(const std::string& name);

}  // namespace hetseq
