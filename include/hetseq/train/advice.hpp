#pragma once

#include <string>
#include <vector>

namespace hetseq {

struct Summary;

/// What a user could do about the time that a run lost, one sentence each; none for a run near its
/// bound.
std::vector<std::string> advice(const Summary& summary);

}  // namespace hetseq
