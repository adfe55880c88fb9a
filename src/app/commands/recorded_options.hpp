#pragma once

#include <filesystem>

#include "hetseq/task/parts.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

/// The data of a run that a command works on.
enum class RunData { training, validation_if_any, none };

/// The options of the run in the folder `run`, and `given` ones before them. --init-model is the
/// run, and its config.json describes the model. What belonged to the run's ranks is left out,
/// since this job may have others. `data` says which data are taken. Throws MissingInput or
/// BadConfig.
GivenOptions options_of_run(const std::filesystem::path& run,
                            const OptionValues& given,
                            const Parts& parts,
                            RunData data = RunData::training);

}  // namespace hetseq
