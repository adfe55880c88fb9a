#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hetseq/model/files/companion_file.hpp"
#include "hetseq/model/tensor_registry.hpp"

namespace hetseq {

/// A model on its way into a folder that transformers reads.
struct ExportedModel {
    std::string config;  // the text of config.json, a JSON object
    std::vector<NamedTensor> tensors;
    std::vector<CompanionFile> text_files;  // of its tokenizer, as they stand in the folder
};

/// What is particular about a model's export. `folder`: the run's.
struct ExportPart {
    /// Called before a tensor is read. Throws BadConfig for a model that transformers does not
    /// have.
    std::function<void(const std::filesystem::path& folder)> check = {};
    /// Changes what transformers has otherwise. Throws BadData.
    std::function<void(const std::filesystem::path& folder, ExportedModel& exported)> change = {};
};

}  // namespace hetseq
