#pragma once

#include <string>
#include <vector>

#include "hetseq/session/options/options.hpp"

namespace hetseq {

/// A line for each thing that the user may expect of these options and that they do not do: values
/// without effect, and a run of which nothing is kept.
std::vector<std::string> idle_options(const Options& options);

}  // namespace hetseq
