#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hetseq {

/// A run's checkpoints, the newest first, or the one that `path` is. Throws MissingInput where
/// there is none.
std::vector<std::filesystem::path> checkpoints_of(const std::filesystem::path& path);

/// A table of them, or JSON.
std::string list_checkpoints(const std::vector<std::filesystem::path>& checkpoints, bool json);

/// Reads all their files. A line each, with what is wrong; `damaged` counts those.
std::string verify_checkpoints(const std::vector<std::filesystem::path>& checkpoints, int& damaged);

/// Progress, options and tensors of one. Throws what reading it meets.
std::string inspect_checkpoint(const std::filesystem::path& checkpoint);

/// The mean of their models' parameters, in their type, as the safetensors file `output`; computed
/// in fp64. Throws BadData where they are not of one model.
void average_checkpoints(const std::vector<std::filesystem::path>& checkpoints,
                         const std::filesystem::path& output);

}  // namespace hetseq
