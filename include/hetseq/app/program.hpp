#pragma once

#include "hetseq/task/parts.hpp"

namespace hetseq {

/// The whole program: runs the command that `argv` names with `parts` and returns its exit code.
/// Reports every error.
int run_program(int argc, char** argv, const Parts& parts);

}  // namespace hetseq
