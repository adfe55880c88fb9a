#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hetseq/model/model.hpp"

namespace hetseq {

/// The checkpoints of the run `path`, the newest first, or the checkpoint `path` itself. Throws
/// MissingInput if there is none.
std::vector<std::filesystem::path> checkpoints_of(const std::filesystem::path& path);

/// A table of them, or JSON.
std::string list_checkpoints(const std::vector<std::filesystem::path>& checkpoints, bool json);

/// Reads all their files. Returns one line for each checkpoint, with what is wrong; `damaged` is
/// the number of damaged ones.
std::string verify_checkpoints(const std::vector<std::filesystem::path>& checkpoints, int& damaged);

/// Progress, options and tensors of one checkpoint. Throws the errors of reading it.
std::string inspect_checkpoint(const std::filesystem::path& checkpoint);

/// The mean of their models' parameters, in their type. Computed in fp64. Throws BadData if they
/// belong to different models.
std::vector<NamedTensor> mean_parameters(const std::vector<std::filesystem::path>& checkpoints);

/// Writes these to the safetensors file `output`.
void average_checkpoints(const std::vector<std::filesystem::path>& checkpoints,
                         const std::filesystem::path& output);

}  // namespace hetseq
