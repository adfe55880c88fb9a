#pragma once

#include <string>
#include <vector>

namespace hetseq {

struct Summary;

/// Advice on how to avoid the time that a run lost, one sentence each. A run near its bound gets
/// none.
std::vector<std::string> advice(const Summary& summary);

}  // namespace hetseq
