#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

class Model;
struct Topology;

/// The words of --recompute, beside a number of layers.
std::vector<std::string> recompute_words();

/// What --recompute, where it is `list`, says of `rank`: one of these words, or a number. Throws
/// BadConfig.
std::string rank_recomputation(const std::string& list, const Topology& topology, int rank);

/// True if memory decides.
bool recomputes_at_need(const std::string& word);

/// How many layers of `model` are computed again from the start; 0 where memory decides. Throws
/// BadConfig where the model has not so many.
std::int64_t recomputed_from_start(const std::string& word, const Model& model);

}  // namespace hetseq
