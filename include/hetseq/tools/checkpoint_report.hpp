#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hetseq {

/// The checkpoints of the run `path`, the newest first, or the checkpoint `path` itself. Throws
/// MissingInput if there is none.
std::vector<std::filesystem::path> checkpoints_of(const std::filesystem::path& path);
/// The same without those that were saved for the clock alone, whose places depend on times; all
/// where there are no others. For averages.
std::vector<std::filesystem::path> regular_checkpoints_of(const std::filesystem::path& path);

/// A table of them, or JSON.
std::string list_checkpoints(const std::vector<std::filesystem::path>& checkpoints, bool json);

/// Reads all their files. Returns one line for each checkpoint, with what is wrong; `damaged` is
/// the number of damaged ones.
std::string verify_checkpoints(const std::vector<std::filesystem::path>& checkpoints, int& damaged);

/// Progress, options and tensors of one checkpoint. Throws the errors of reading it.
std::string inspect_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace hetseq
