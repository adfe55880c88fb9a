#pragma once

#include <string>
#include <vector>

#include "hetseq/session/options.hpp"

namespace hetseq {

/// Words that a command takes by their place.
struct CommandArgument {
    enum class Count { one, optional, many };  // many: one or more
    std::string name;                          // as help shows it: "RUN", "IDX"
    Count count = Count::one;
    std::string help;
};

/// An option that only one command has.
struct CommandOption {
    enum class Need { optional, required };
    std::string name;           // without dashes
    std::string type;           // as help shows it: "N", "DIR"; empty for a switch
    std::string default_value;  // of an optional one
    std::string help;
    Need need = Need::optional;
};

/// One way to call a command.
struct CommandForm {
    std::string word;  // what follows the command's name: "images"; empty: nothing, the only form
    std::string help;  // empty where the command's says it
    std::vector<CommandArgument> arguments = {};
    std::vector<CommandOption> own_options = {};
    std::vector<std::string> options = {};  // those of the option table that it uses, by name

    const CommandOption* own_option(const std::string& name) const;
    bool uses(const std::string& option) const;  // a common option
    /// A part's own option is used if the option that chooses the part is used.
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

/// The names of all options of the option table except `others`.
std::vector<std::string> options_but(const std::vector<std::string>& others);

enum class ValueKind { any, file, configuration, folder };

/// The kind of a value, by its name in the help: "PATH", "REFERENCE" and "NAME|FILE" a file,
/// "CONFIG.cfg" a configuration, "DIR", "RUN" and "RUN[,RUN...]" a folder.
ValueKind value_kind(const std::string& name);

}  // namespace hetseq
