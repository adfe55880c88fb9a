#pragma once

#include "hetseq/task/parts.hpp"
#include "hetseq/session/options/options.hpp"

namespace hetseq {

/// The values that take effect. The command line overrides the file, the file overrides the task's
/// defaults, and these override the table's. Throws BadConfig for an unknown task or part.
OptionValues merged_values(const GivenOptions& given, const Parts& parts);

}  // namespace hetseq
