#pragma once

#include <cstdint>
#include <string>

#include "hetseq/options/option.hpp"
#include "hetseq/session/ranks/by_rank.hpp"
#include "hetseq/session/ranks/rank_choices.hpp"

// Options that ranks may have unlike: a value for all, or a list by rank, host or device
// (by_rank.hpp). Their readers throw BadConfig.
namespace hetseq {

/// A whole number. With `default_value` "" it may be left empty.
Option<ByRank<std::int64_t>> number_by_rank_option(const std::string& name,
                                                   const std::string& default_value,
                                                   const std::string& help);
/// --device, by rank or host: it may choose the devices.
Option<ByRank<DeviceChoice>> device_option(const std::string& help);
/// --precision
Option<ByRank<PrecisionChoice>> precision_option(const std::string& help);
/// --recompute
Option<ByRank<RecomputeChoice>> recompute_option(const std::string& help);
/// --shard-by
Option<ByRank<ShardPart>> shard_by_option(const std::string& help);

}  // namespace hetseq
