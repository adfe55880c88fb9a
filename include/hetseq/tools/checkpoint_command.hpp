#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hetseq/options/options_of.hpp"
#include "hetseq/command_line/command_description.hpp"
#include "hetseq/command_line/command_words.hpp"

namespace hetseq {

/// What `hetseq checkpoint average` averages and where it writes it.
struct AverageOptions {
    std::string output{};   // the safetensors file
    std::int64_t last = 0;  // only the newest so many; 0: all
    bool overwrites = false;
};

/// What `hetseq checkpoint export` writes.
struct ExportFormat {
    std::string format{};      // hf
    std::string checkpoint{};  // as --checkpoint names it
    bool overwrites = false;   // replace the model in the folder
};

OptionsOf<AverageOptions> average_options();
OptionsOf<ExportFormat> export_options();

/// --checkpoint of commands that take a run's model.
Option<std::string> checkpoint_option();

CommandDescription checkpoint_description();

/// The first of `checkpoints`, at most `last`; 0: all.
std::vector<std::filesystem::path> first_of(std::vector<std::filesystem::path> checkpoints,
                                            std::int64_t last);
/// The run's newest checkpoints, at most `last`; 0: all. Throws MissingInput if there is none.
std::vector<std::filesystem::path> newest_checkpoints(const std::string& run, std::int64_t last);

/// True for the forms of `hetseq checkpoint` that need no tensors: list, verify, inspect.
bool needs_no_tensors(const std::string& form);
/// These. Returns the exit code.
int look_at_checkpoints(const CommandWords& words);

}  // namespace hetseq
