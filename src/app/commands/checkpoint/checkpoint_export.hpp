#pragma once

#include <filesystem>
#include <string>

namespace hetseq {

struct Parts;

struct ExportOptions {
    std::filesystem::path run;  // a run's folder, one of its checkpoints, or a folder that
                                // transformers has saved
    std::string checkpoint;     // as `chosen_model_files` takes it; empty: the best, or the final
                                // model where there is no best one
    std::filesystem::path output;  // folder
    bool overwrites = false;
};

/// Writes a model as a folder that transformers loads: config.json, model.safetensors, vocab.txt
/// and tokenizer_config.json. Returns what to tell about it. Throws MissingInput, BadConfig
/// (also for a model that transformers does not have), BadData or IoError; then nothing is left
/// behind.
std::string export_for_transformers(const ExportOptions& options, const Parts& parts);

}  // namespace hetseq
