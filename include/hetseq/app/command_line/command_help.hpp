#pragma once

#include <string>

#include "hetseq/task/parts.hpp"
#include "hetseq/app/command_line/command_description.hpp"

namespace hetseq {

/// The text of `hetseq COMMAND --help`: usages, arguments and options, with the names of `parts`.
/// It covers the form that `word` names, or all forms.
std::string command_help(const CommandDescription& command,
                         const std::string& word,
                         const Parts& parts);

}  // namespace hetseq
