#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hetseq {

class Model;

/// The file that --init-model names: a .safetensors file, or model.safetensors in the folder.
std::filesystem::path model_file(const std::string& file_or_folder);
/// The config.json beside that file.
std::filesystem::path model_config_file(const std::string& file_or_folder);

/// Writes the model's stored tensors as a safetensors file, atomically. Throws IoError.
void save_model(const std::filesystem::path& path, const Model& model);

/// Fills the model's stored tensors from a safetensors file; precision is converted to the model's,
/// other types must be equal. Throws MissingInput, IoError, or BadData that names a missing,
/// surplus or mis-shaped tensor (with both shapes) or one of a wrong type; then the model is
/// unchanged.
void load_model(const std::filesystem::path& path, Model& model);

/// Tensors of heads (`Model::is_of_head`) by name.
struct UnlikeHeads {
    std::vector<std::string> missing;  // in the file; the model's are as they were
    std::vector<std::string> unused;   // of the file
};

/// The same for a file that may be another task's: only its heads may differ from the model's.
UnlikeHeads load_shared_network(const std::filesystem::path& path, Model& model);

}  // namespace hetseq
