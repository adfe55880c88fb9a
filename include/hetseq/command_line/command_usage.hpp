#pragma once

#include <string>
#include <vector>

#include "hetseq/command_line/command_description.hpp"

namespace hetseq {

/// "hetseq prepare images IDX... --output DIR [--shards N]"
std::string usage_of(const CommandDescription& command, const CommandForm& form);

/// "hetseq prepare images"
std::string called_as(const CommandDescription& command, const CommandForm& form);

/// The usages, one for each form.
std::vector<std::string> usage_lines(const CommandDescription& command);

/// An option of the form as its usage shows it: "[--shards N]", "--output DIR".
std::string usage_of(const OptionSpec& option);

}  // namespace hetseq
