#pragma once

#include <filesystem>
#include <vector>

#include "hetseq/model/model.hpp"

namespace hetseq {

/// The mean of their models' parameters, in their type. Computed in fp64. Throws BadData if they
/// belong to different models, or if one is not as it was written.
std::vector<NamedTensor> mean_parameters(const std::vector<std::filesystem::path>& checkpoints);

/// Writes these to the safetensors file `output`.
void average_checkpoints(const std::vector<std::filesystem::path>& checkpoints,
                         const std::filesystem::path& output);

}  // namespace hetseq
