#pragma once

#include <optional>
#include <string>

#include "hetseq/optim/optimizer_options.hpp"
#include "hetseq/optim/schedule.hpp"

namespace hetseq {

/// What the user chose for the parts of a task; each part reads what concerns it.
struct PartOptions {
    std::string model_config{};  // a preset's name or a config.json; empty: the task's default
    std::string
        init_model{};  // folder with config.json and model.safetensors; empty: from the seed
    std::optional<double> dropout{};  // overrides the model's own
    std::optional<double> attention_dropout{};
    OptimizerOptions optimizer{};
    ScheduleOptions schedule{};
};

}  // namespace hetseq
