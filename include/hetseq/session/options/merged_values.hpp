#pragma once

#include "hetseq/task/parts.hpp"
#include "hetseq/session/options/options.hpp"

namespace hetseq {

/// The values that take effect. The command line overrides the file, the file overrides the task's
/// defaults, and these override the table's. Throws BadConfig for an unknown task or part.
OptionValues merged_values(const GivenOptions& given, const Parts& parts);

/// Throws BadConfig where a value is not UTF-8: the JSON of checkpoints holds nothing else.
void check_encoding(const OptionValues& values);

}  // namespace hetseq
