#pragma once

#include <string>

#include "hetseq/task/parts.hpp"
#include "hetseq/app/command_line/command_description.hpp"

namespace hetseq {

/// `hetseq COMMAND --help`: usages, arguments and options with the names of `parts`; of one form
/// where `word` names one, else of all.
std::string command_help(const CommandDescription& command,
                         const std::string& word,
                         const Parts& parts);

}  // namespace hetseq
