#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hetseq/options/option_spec.hpp"

namespace hetseq {

/// Options by name with their values, in the order in which they were given.
using GivenInOrder = std::vector<std::pair<std::string, std::string>>;

/// The last value of each option. Warns of those that have others before it. `where`: where they
/// were given: "on the command line", "in inputs/mnist.cfg".
OptionValues last_values(const GivenInOrder& given, const std::string& where);

}  // namespace hetseq
