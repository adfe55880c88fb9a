#pragma once

#include <filesystem>

namespace hetseq {

class Model;

/// Writes the model's stored tensors as a safetensors file, atomically. Throws IoError.
void save_model(const std::filesystem::path& path, const Model& model);

/// Fills the model's stored tensors from a safetensors file of floating tensors; precision is
/// converted to the model's. Throws MissingInput, IoError, or BadData that names a missing, surplus
/// or mis-shaped tensor (with both shapes); then the model is unchanged.
void load_model(const std::filesystem::path& path, Model& model);

}  // namespace hetseq
