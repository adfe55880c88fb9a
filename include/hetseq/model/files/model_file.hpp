#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace hetseq {

class Model;

/// The file that --init-model names: a file of weights, or the folder's (`weights_in`).
std::filesystem::path model_file(const std::string& file_or_folder);
/// The same. Throws BadData where the file is a checkpoint's and not as its manifest says that it
/// was written.
std::filesystem::path checked_model_file(const std::string& file_or_folder);
/// The config.json beside that file.
std::filesystem::path model_config_file(const std::string& file_or_folder);

/// The kind of network that the config.json in `folder` describes, its "model_type"; empty where
/// there is no such file, or it does not say. Throws BadData for a file that holds no JSON object,
/// BadConfig for a "model_type" that is no text.
std::string model_type_in(const std::filesystem::path& folder);

/// Writes the model's stored tensors, all of which it holds, as a safetensors file, atomically.
/// `before_naming` as in AtomicFile. Throws IoError.
void save_model(const std::filesystem::path& path,
                const Model& model,
                const std::function<void()>& before_naming = {});

/// Fills the model's stored tensors from a safetensors file, or from the files of an index;
/// precision is converted to the model's, other types must be equal. Of those that it does not hold
/// (`Model::hold`) nothing is read, but they are checked alike. Throws MissingInput, IoError, or
/// BadData that names a missing, surplus or mis-shaped tensor (with both shapes) or one of a wrong
/// type; then the model is unchanged.
void load_model(const std::filesystem::path& path, Model& model);

/// The tensors of heads in which a model and a file differ.
struct OtherHeads {
    std::vector<std::string> drawn;   // tensors of the model that are not taken from the file
    std::vector<std::string> unread;  // tensors of the file that the model does not take
};

/// As `load_model`, from the file of a model that may have other heads (`Model::is_head`): those
/// that the file lacks, and those that are new (`Model::is_new_head`), are drawn from `seed`, as
/// `initialise_parameters` does.
OtherHeads load_pretrained(const std::filesystem::path& path, Model& model, std::uint64_t seed);

}  // namespace hetseq
