#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hetseq/data/order/epoch_parts.hpp"

namespace hetseq {

class ShardSet;

constexpr double most_data_weight = 1000;

/// The weights in "2,0.5", one for each set of shards; none in "". Throws BadConfig where one is
/// not a number above 0 and at most `most_data_weight`.
std::vector<double> data_weights(const std::string& text);

/// What an epoch takes of the sets, by set. A set is what one of the names of --data stands for.
/// One of n samples and weight w gives w n of them, rounded to a whole number, and at least one.
/// Sets without samples are left out. Null where every weight is 1. Throws BadConfig where the
/// number of weights is not that of the names, and where an epoch would have too many blocks.
std::shared_ptr<const std::vector<SampleSet>> weighted_sets(const ShardSet& shards,
                                                            std::span<const double> weights,
                                                            std::int64_t block_length);

/// Where `weights` are given: a line for each set, with its name in `names`, that says how much an
/// epoch takes of it, and one for the epoch. `units` is what values of the units field are called,
/// such as "tokens"; they are counted where it is not empty. Otherwise "".
std::string data_weights_report(const ShardSet& shards,
                                std::span<const double> weights,
                                std::span<const std::string> names,
                                const std::string& units);

}  // namespace hetseq
