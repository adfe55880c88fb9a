#pragma once

#include <vector>

namespace hetseq {

class Replica;
struct RunSettings;

/// By rank, the same number for those that take the same time for the same share of a batch: like
/// ranks where each has a whole replica, and first stages of pipelines that are cut alike over like
/// ranks. A rank that is neither has a number of its own.
std::vector<int> like_leaders(const RunSettings& settings, const Replica& replica);

}  // namespace hetseq
