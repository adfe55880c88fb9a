#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hetseq {

class Model;

/// The safetensors files that `choice` means in the folder `run`: best, last, update:N (the
/// checkpoint of that update), average:N (the last N checkpoints, whose mean is meant), a file or a
/// folder with model.safetensors; empty: RUN/best.safetensors, or RUN/model.safetensors where there
/// is no such file. Throws MissingInput or BadConfig.
std::vector<std::filesystem::path> chosen_model_files(const std::filesystem::path& run,
                                                      const std::string& choice);

/// They as messages name them: "RUN/best.safetensors", "the mean of A, B".
std::string chosen_model_name(const std::filesystem::path& run, const std::string& choice);

/// Fills the model from them. Throws as `load_model`.
void load_chosen_model(const std::filesystem::path& run, const std::string& choice, Model& model);

}  // namespace hetseq
