#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hetseq {

constexpr std::int64_t most_shards = 99999;  // five digits in their names

/// "train-00000-of-00002.h5"
std::string shard_name(const std::string& set, std::int64_t shard, std::int64_t shards);

/// The files of `folder` that FOLDER/SET-*.h5 names, by name; none where there is no such folder.
/// IoError where it cannot be listed.
std::vector<std::filesystem::path> shards_in(const std::string& folder, const std::string& set);

/// Throws BadConfig where `folder` holds shards of `set` that these would not replace:
/// FOLDER/train* would read them beside the new ones. IoError where it cannot be listed.
void check_no_other_shards(const std::string& folder, const std::string& set, std::int64_t shards);

/// Makes `folder` where it is missing. Throws BadConfig where it holds shards of `sets` that may
/// not be replaced, IoError.
void prepare_shard_folder(const std::string& folder,
                          const std::vector<std::string>& sets,
                          bool overwrite);

/// Removes shards of `set` that are none of its `shards` new ones: FOLDER/train* would read them
/// too. Throws IoError.
void remove_other_shards(const std::string& folder, const std::string& set, std::int64_t shards);

}  // namespace hetseq
