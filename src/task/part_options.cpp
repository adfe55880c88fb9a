#include "hetseq/task/part_options.hpp"

#include "hetseq/options/absolute_path.hpp"

namespace hetseq {

OptionsOf<PartOptions> part_options() {
    return OptionsOf<PartOptions>()
        .heading("What is trained")
        .add(&PartOptions::model_config,
             text_option("model-config",
                         "NAME|FILE",
                         "",
                         "size of bert (tiny, mini, small, base, large) or transformer (tiny, "
                         "base, big), or a config.json")
                 .fixed_with(FixedWith::run)
                 .repeated_as(absolute_if_file))
        .add(&PartOptions::init_model,
             text_option("init-model",
                         "PATH",
                         "",
                         "start from the parameters in PATH/model.safetensors, or in the file "
                         "PATH; bert and transformer also take the config.json beside them")
                 .repeated_as(absolute_path))
        .add(&PartOptions::dropout,
             probability_option("dropout", "dropout probability; by default the model's")
                 .fixed_with(FixedWith::run))
        .add(&PartOptions::attention_dropout,
             probability_option("attention-dropout",
                                "dropout probability of attention weights; by default the model's")
                 .fixed_with(FixedWith::run))
        .add(&PartOptions::optimizer, optimizer_options())
        .add(&PartOptions::schedule, schedule_options());
}

}  // namespace hetseq
