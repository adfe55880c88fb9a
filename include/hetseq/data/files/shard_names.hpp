#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace hetseq {

constexpr std::int64_t most_shards = 99999;  // five digits in their names

/// "train-00000-of-00002.h5"
std::string shard_name(const std::string& set, std::int64_t shard, std::int64_t shards);

/// Makes `folder` where it is missing. Throws BadConfig where it holds shards, of whatever set,
/// unless they may be replaced: sets that were not prepared together do not belong together. Throws
/// IoError where it cannot be listed or made.
void prepare_shard_folder(const std::string& folder, bool overwrite);

/// All new shards are complete under temporary names, and one process says so before any gets its
/// own: marks the folder as unfinished (`unfinished_preparation`), then removes the earlier shards.
/// Throws IoError.
void begin_replacing_shards(const std::string& folder);

/// All new shards have their names. The same process removes the mark. Throws IoError.
void end_replacing_shards(const std::string& folder);

}  // namespace hetseq
