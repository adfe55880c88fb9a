#include "hetseq/train/trainer_options.hpp"

namespace hetseq {

namespace {

Option<BestBy> best_by_option() {
    return {{"best-by",
             "NAME:min|max",
             "loss:min",
             "loss term or metric whose lowest or highest value marks the best validation; loss: "
             "the sum of the terms"},
            parse_best_by};
}

void add_checkpoint_options(OptionsOf<TrainerOptions>& options) {
    options.heading("Checkpoints and stopping")
        .add(&TrainerOptions::save_interval,
             whole_number_option(
                 "save-interval", "1", "epochs between checkpoints; 0: do not save by epochs"))
        .add(&TrainerOptions::save_interval_updates,
             whole_number_option("save-interval-updates",
                                 "0",
                                 "updates between checkpoints; 0: do not save by updates"))
        .add(&TrainerOptions::stop_after,
             whole_number_option(
                 "stop-after",
                 "0",
                 "save and stop after N updates of this start; the same command continues the "
                 "run; 0: never")
                 .of_command())
        .add(&TrainerOptions::best_by, best_by_option())
        .add(&TrainerOptions::patience,
             whole_number_option("patience",
                                 "0",
                                 "stop after N validations in a row without improvement (as "
                                 "--best-by measures it); 0: never"))
        .add(&TrainerOptions::check_interval,
             whole_number_option("check-interval",
                                 "1000",
                                 "updates between comparisons of the ranks' models, also made "
                                 "after the first and the last update; 0: never"))
        .add(&TrainerOptions::drift,
             named_value_option<DriftPolicy>("drift",
                                             {{"warn", DriftPolicy::warn},
                                              {"sync", DriftPolicy::sync},
                                              {"abort", DriftPolicy::abort}},
                                             "warn",
                                             "what to do when the ranks' models differ by more "
                                             "than rounding: warn, sync (take rank 0's) or abort"));
}

}  // namespace

OptionsOf<TrainerOptions> trainer_options() {
    OptionsOf<TrainerOptions> options;
    options.heading("Optimization")
        .add(&TrainerOptions::clip_norm,
             number_option("clip-norm", "0", "largest 2-norm of the gradient; 0: no limit")
                 .fixed_with(FixedWith::optimizer))
        .add(&TrainerOptions::staleness,
             whole_number_option("staleness",
                                 "0",
                                 "updates that gradients may be late, so that they are summed "
                                 "beside computing; 0: none is late (docs/virtual-workers.md)",
                                 0,
                                 16))
        .add(&TrainerOptions::max_skips,
             whole_number_option(
                 "max-skips",
                 "100",
                 "give up after this many updates in a row whose loss or gradient is "
                 "not finite",
                 1));
    options.heading("Running").add(
        &TrainerOptions::valid_interval,
        whole_number_option(
            "valid-interval", "0", "updates between validations; 0: validate after each epoch"));
    add_checkpoint_options(options);
    return options;
}

}  // namespace hetseq
