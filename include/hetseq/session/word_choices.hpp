#pragma once

#include <string>
#include <vector>

// The words of options that ranks may have unlike.
namespace hetseq {

/// Of --precision: "auto" and those of all precisions.
std::vector<std::string> precision_choices();

/// Of --recompute, beside a number of layers.
std::vector<std::string> recompute_words();
/// True if memory decides.
bool recomputes_at_need(const std::string& word);

/// Of --shard-by, beside a number, which is a rank's part: "memory" and "even".
std::vector<std::string> shard_words();

}  // namespace hetseq
