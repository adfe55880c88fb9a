#pragma once

#include <string>
#include <vector>

#include "hetseq/options/option_spec.hpp"
#include "hetseq/command_line/command_description.hpp"

namespace hetseq {

/// What may be completed behind a command and, where one is chosen, its form.
struct CompletedCall {
    std::string command, form;              // form: empty where none is chosen or there is only one
    std::vector<const CommandForm*> forms;  // to choose from
    std::string argument;  // the kind of its words, as `offered_values`; empty: none
    OptionTable options;   // of all forms, where none is chosen
};

/// For all commands, with the options of `table` that they use.
std::vector<CompletedCall> completed_calls(const OptionTable& table);

/// "any", "file", "configuration" or "folder".
std::string kind_text(ValueKind kind);

/// The texts that an option takes, with blanks between, or the kind of its value.
std::string offered_values(const OptionSpec& option);

/// A command with several forms, before one is chosen: the options of all.
CommandForm union_of(const CommandDescription& command);

}  // namespace hetseq
