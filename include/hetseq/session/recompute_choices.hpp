#pragma once

#include <string>
#include <vector>

namespace hetseq {

/// The words of --recompute, beside a number of layers.
std::vector<std::string> recompute_words();

/// True if memory decides.
bool recomputes_at_need(const std::string& word);

}  // namespace hetseq
