#pragma once

#include <string>

#include "hetseq/task/parts.hpp"

namespace hetseq {

/// hetseq(1) for man: the tables of commands and options, the tasks of `parts`, and exit codes.
std::string man_page(const Parts& parts);

}  // namespace hetseq
