#pragma once

#include <string>
#include <vector>

#include "hetseq/task/parts.hpp"
#include "hetseq/session/options.hpp"

namespace hetseq {

/// The values that an option takes, if they can be listed: those that its setter knows, or the
/// names of the parts that it chooses from. After a value that ends in ':' the user writes more.
std::vector<std::string> option_choices(const OptionSpec& option, const Parts& parts);

/// The option's help, with the choices appended if the help does not name all of them.
std::string explained(const OptionSpec& option, const Parts& parts);

}  // namespace hetseq
