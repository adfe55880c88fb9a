#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "hetseq/command_line/command_words.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/run_settings.hpp"

#include "app/commands/recorded_options.hpp"

namespace hetseq {

/// The run whose model predicts, and how.
struct PredictingRun {
    std::filesystem::path folder;
    std::string checkpoint;  // as `chosen_model_files` takes it
    std::int64_t batch_samples = 64;
};

PredictingRun predicting_run(const CommandWords& words);

/// The run's options. Throws BadConfig where its model has a command of its own.
GivenOptions options_of_predicting_run(const PredictingRun& run,
                                       const OptionValues& given,
                                       const Parts& parts,
                                       RunData data = RunData::training);

/// With its parameters, on the device. Throws BadConfig for a model that predicts nothing.
std::shared_ptr<Model> load_predicting_model(const PredictingRun& run,
                                             const RunSettings& settings,
                                             const Parts& parts);

}  // namespace hetseq
