#pragma once

#include <string>

#include "hetseq/task/parts.hpp"

/// What `hetseq document` writes, from the program's own tables.
namespace hetseq {

/// A script for bash that completes commands, options, their choices (names of `parts` among them),
/// files and folders.
std::string bash_completion(const Parts& parts);
/// The same for zsh and fish, with the help of commands and options beside them.
std::string zsh_completion(const Parts& parts);
std::string fish_completion(const Parts& parts);

/// hetseq(1) for man: the tables of commands and options, the tasks of `parts`, and exit codes.
std::string man_page(const Parts& parts);

/// docs/options.md: every option by group, and the defaults of the tasks of `parts`.
std::string options_page(const Parts& parts);

}  // namespace hetseq
