#pragma once

#include "hetseq/task/parts.hpp"
#include "hetseq/session/options/options.hpp"

namespace hetseq {

/// The common options and those that `parts` declare. Throws InternalError if a part declares a
/// name that is taken, or if two parts declare one name differently.
OptionTable option_table(const Parts& parts);

/// The common options and those of the parts that `values` choose.
OptionTable options_in_use(const Parts& parts, const OptionValues& values);

/// Whether a part that `values` choose declares `spec`; true for a common option.
bool is_in_use(const OptionSpec& spec, const OptionValues& values);

}  // namespace hetseq
