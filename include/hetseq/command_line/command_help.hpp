#pragma once

#include <string>

#include "hetseq/options/option_spec.hpp"
#include "hetseq/command_line/command_description.hpp"

namespace hetseq {

/// The text of `hetseq COMMAND --help`: usages, arguments and options, among them those of `table`
/// that the command uses. It covers the form that `word` names, or all forms.
std::string command_help(const CommandDescription& command,
                         const std::string& word,
                         const OptionTable& table);

}  // namespace hetseq
