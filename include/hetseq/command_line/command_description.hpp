#pragma once

#include <string>
#include <vector>

#include "hetseq/options/option_spec.hpp"

namespace hetseq {

/// Words that a command takes by their place.
struct CommandArgument {
    enum class Count { one, optional, many };  // many: one or more
    std::string name;                          // as help shows it: "RUN", "IDX"
    Count count = Count::one;
    std::string help;
};

/// One way to call a command.
struct CommandForm {
    std::string word;  // what follows the command's name: "images"; empty: nothing, the only form
    std::string help;  // empty where the command's says it
    std::vector<CommandArgument> arguments = {};
    OptionTable own_options = {};  // that only this form has
    OptionTable options = {};      // of those that all runs have, which it uses

    bool has_own(const std::string& name) const;
    /// Of the options of runs. A part's own option is used if the option that chooses the part is.
    bool uses(const OptionSpec& spec) const;
};

/// Describes a command's words. Usage, help, parser, completion, man page and docs/options.md are
/// made from it.
struct CommandDescription {
    std::string name;
    std::string help;
    std::vector<CommandForm> forms;  // several: each has a word

    /// Null if there is none.
    const CommandForm* form(const std::string& word) const;
    std::vector<std::string> words() const;
};

/// The option's help, with its choices appended if the help does not name all of them.
std::string explained(const OptionSpec& option);

enum class ValueKind { any, file, configuration, folder };

/// The kind of a value, by its name in the help: "PATH", "REFERENCE" and "NAME|FILE" a file,
/// "CONFIG.cfg" a configuration, "DIR", "RUN" and "RUN[,RUN...]" a folder.
ValueKind value_kind(const std::string& name);

}  // namespace hetseq
