#pragma once

#include <string>

#include "hetseq/task/parts.hpp"

namespace hetseq {

/// A script for bash that completes commands, options, their choices (names of `parts` among them),
/// files and folders.
std::string bash_completion(const Parts& parts);

}  // namespace hetseq
