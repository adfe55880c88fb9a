#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hetseq/model/companion_file.hpp"
#include "hetseq/model/tensor_registry.hpp"

namespace hetseq {

/// A model on its way into a folder that transformers reads.
struct ExportedModel {
    std::string config;  // the text of config.json, a JSON object
    std::vector<NamedTensor> tensors;
    std::vector<CompanionFile> text_files;  // of its tokenizer, as they stand in the folder
};

/// Changes what transformers has otherwise. `folder`: that of the run. Throws BadConfig for a model
/// that transformers does not have, and BadData.
using ExportPart =
    std::function<void(const std::filesystem::path& folder, ExportedModel& exported)>;

}  // namespace hetseq
