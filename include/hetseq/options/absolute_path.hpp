#pragma once

#include <filesystem>
#include <string>

/// How config.cfg names files, so that it says the same in another folder.
namespace hetseq {

/// `path` from the root; an empty one stays empty.
std::string absolute_path(const std::string& path);

/// The same where `name_or_file` is a file; names such as "base" are no paths.
std::string absolute_if_file(const std::string& name_or_file);

/// Whether `name`, of letters, digits, '_' and '-', names no file.
bool names_no_file(const std::string& name);

/// Whether it may name a split of a dataset in Python, and is no path: such a name that is no file,
/// or a folder of something else than shards, as that of a split's images.
bool may_name_split(const std::string& name);

/// False if config.cfg could not hold the name.
bool can_be_written(const std::filesystem::path& folder);

}  // namespace hetseq
