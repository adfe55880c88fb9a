#pragma once

#include <string>
#include <vector>

#include "hetseq/task/parts.hpp"
#include "hetseq/session/options.hpp"

namespace hetseq {

/// The values an option takes, where they can be listed: those its setter knows, or the names of
/// the parts it chooses from. One that ends in ':' goes on as the user likes.
std::vector<std::string> option_choices(const OptionSpec& option, const Parts& parts);

/// The option's help, and its choices where the help does not name them all.
std::string explained(const OptionSpec& option, const Parts& parts);

}  // namespace hetseq
