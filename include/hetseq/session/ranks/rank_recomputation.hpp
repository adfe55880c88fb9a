#pragma once

#include <cstdint>
#include <string>

namespace hetseq {

class Model;
struct Topology;

/// What --recompute, where it is `list`, says of `rank`: a word, or a number. Throws BadConfig.
std::string rank_recomputation(const std::string& list, const Topology& topology, int rank);

/// How many layers of `model` are computed again from the start; 0 where memory decides. Throws
/// BadConfig where the model has not so many.
std::int64_t recomputed_from_start(const std::string& word, const Model& model);
/// The same of a stage's layers: at most all that it has.
std::int64_t recomputed_in_stage(const std::string& word, const Model& model);

}  // namespace hetseq
