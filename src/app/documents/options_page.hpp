#pragma once

#include <string>

#include "hetseq/task/parts.hpp"

namespace hetseq {

/// docs/options.md: every option by group, and the defaults of the tasks of `parts`.
std::string options_page(const Parts& parts);

}  // namespace hetseq
