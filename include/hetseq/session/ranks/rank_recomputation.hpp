#pragma once

#include <cstdint>

#include "hetseq/session/ranks/rank_choices.hpp"

namespace hetseq {

class Model;

/// How many layers of `model` are computed again from the start; 0 where memory decides. Throws
/// BadConfig where the model has not so many.
std::int64_t recomputed_from_start(RecomputeChoice choice, const Model& model);
/// The same of a stage's layers: at most all that it has.
std::int64_t recomputed_in_stage(RecomputeChoice choice, const Model& model);

}  // namespace hetseq
