#pragma once

#include <string>
#include <vector>

namespace hetseq {

/// Ascending ranks in short: {0, 1, 2, 5} is "0-2, 5".
std::string rank_ranges(const std::vector<int>& ranks);

/// "rank 3" or "ranks 0-2, 5".
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace hetseq
