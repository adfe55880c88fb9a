#pragma once

#include <map>
#include <string>
#include <vector>

namespace hetseq {

/// By a parameter's name: the ranks that hold it, where these are stages of a pipeline. The first
/// of them speaks for it. Empty: every rank holds all.
using ParameterHolders = std::map<std::string, std::vector<int>>;

}  // namespace hetseq
