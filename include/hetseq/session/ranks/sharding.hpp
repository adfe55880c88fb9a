#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

class FlatParameters;
class Optimizer;
struct RunSettings;
struct Topology;

/// What --shard-by, where it is `list`, says of `rank`: a word, or a number. Throws BadConfig.
std::string rank_shard_part(const std::string& list, const Topology& topology, int rank);

/// The bytes of gradients that are summed together, the same on all ranks. A bucket holds at most
/// half of a small model, so that its first gradients are summed while backward still runs. Where
/// that gains nothing the model is one bucket: the same bits, since gradients of these sizes are
/// summed directly (docs/mpi.md).
std::int64_t bucket_bytes(const RunSettings& settings, const FlatParameters& parameters);

/// The ranks' parts of what is cut, from the words of --shard-by and, for "memory", from the `room`
/// that memory has, by rank. Throws BadConfig where no rank has a part, and where words are of
/// unlike kinds.
std::vector<std::int64_t> shard_parts(const std::vector<std::string>& words,
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
