#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "hetseq/options/option.hpp"
#include "hetseq/options/options_of.hpp"
#include "hetseq/optim/optimizer_options.hpp"
#include "hetseq/optim/schedule.hpp"

namespace hetseq {

/// The user's choices for the parts of a task; each part reads its own.
struct PartOptions {
    std::string model_config{};  // a preset's name or a config.json; empty: the task's default
    std::string
        init_model{};    // folder with config.json and model.safetensors; empty: from the seed
    std::string data{};  // the training data as --data names them; parts may read what they say of
                         // themselves, before a corpus is open
    std::string valid_data{};  // as --valid-data names them; empty: the run validates nothing
    std::string cache_dir{};   // of this host, for what is kept from run to run; "none": no folder;
                               // empty: the user's
    std::uint64_t seed = 1;    // of the run
    std::optional<double> dropout{};  // overrides the model's own
    std::optional<double> attention_dropout{};
    OptimizerOptions optimizer{};
    ScheduleOptions schedule{};
    std::map<std::string, std::string> own{};  // texts of options that parts declared, by name

    /// The value of an option that the reading part declared.
    template <class T>
    T get(const Option<T>& option) const {
        const auto found = own.find(option.name());
        return option.read(found != own.end() ? found->second : option.default_value());
    }
};

/// Those that all parts share.
OptionsOf<PartOptions> part_options();

}  // namespace hetseq
