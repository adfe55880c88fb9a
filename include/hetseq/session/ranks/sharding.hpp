#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/session/ranks/rank_choices.hpp"

namespace hetseq {

class FlatParameters;
class Optimizer;
struct RunSettings;

/// The bytes of gradients that are summed together, the same on all ranks. A bucket holds at most
/// half of a small model, so that its first gradients are summed while backward still runs. Where
/// that gains nothing the model is one bucket: the same bits, since gradients of these sizes are
/// summed directly (docs/mpi.md).
std::int64_t bucket_bytes(const RunSettings& settings, const FlatParameters& parameters);

/// The ranks' parts of what is cut, by --shard-by's `choices` and, where it is by memory, by the
/// `room` that memory has, by rank. Throws BadConfig where no rank has a part, and where choices
/// are of unlike kinds.
std::vector<std::int64_t> shard_parts(const std::vector<ShardPart>& choices,
                                      const std::vector<std::int64_t>& room);

/// Cuts the optimizer's state over the ranks if --shard says so, before an optimizer is made. On
/// one rank there is nothing to cut. Throws as above.
void shard_state(const RunSettings& settings,
                 FlatParameters& parameters,
                 const std::vector<std::int64_t>& room,
                 int rank);

/// Throws BadConfig where the state is cut and `optimizer`, called `name`, does not know that.
void check_follows_shards(const Optimizer& optimizer,
                          const FlatParameters& parameters,
                          const std::string& name);

}  // namespace hetseq
