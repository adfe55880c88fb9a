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

/// The bytes of gradients that are summed together. A bucket holds at most half of a small model,
/// so that its first gradients are summed while backward still runs. Where that gains nothing the
/// model is one bucket: the same bits, since gradients of these sizes are summed directly
/// (docs/mpi.md).
std::int64_t bucket_bytes(const RunSettings& settings, const FlatParameters& parameters);

/// The ranks' parts of what is cut. By memory: what a rank's memory [MiB] has left beside values
/// and gradients of `parameters`. Throws BadConfig where no rank has a part, and where the words of
/// ranks are of unlike kinds.
std::vector<std::int64_t> shard_parts(const RunSettings& settings,
                                      const FlatParameters& parameters);

/// Cuts the optimizer's state over the ranks if --shard says so, before an optimizer is made. On
/// one rank there is nothing to cut.
void shard_state(const RunSettings& settings, FlatParameters& parameters, int rank);

/// Throws BadConfig where the state is cut and `optimizer`, called `name`, does not know that.
void check_follows_shards(const Optimizer& optimizer,
                          const FlatParameters& parameters,
                          const std::string& name);

}  // namespace hetseq
