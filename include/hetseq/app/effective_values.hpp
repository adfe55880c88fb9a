#pragma once

#include "hetseq/task/parts.hpp"
#include "hetseq/app/option_parser.hpp"

namespace hetseq {

/// What takes effect: `line` over `file` over the task's defaults over the table's. Throws
/// BadConfig for an unknown task or part.
OptionValues effective_values(const GivenOptions& given, const Parts& parts);

}  // namespace hetseq
