#include "hetseq/optim/optimizer_options.hpp"

#include "hetseq/optim/schedule.hpp"

namespace hetseq {

namespace {

constexpr const char* heading = "Optimization";
constexpr double largest_decay = 0.9999999;

}  // namespace

OptionsOf<OptimizerOptions> optimizer_options() {
    return OptionsOf<OptimizerOptions>()
        .heading(heading)
        .add(&OptimizerOptions::name,
             text_option("optimizer", "NAME", "adam", "rule of the update")
                 .fixed_with(FixedWith::optimizer))
        .add(&OptimizerOptions::weight_decay,
             number_option(
                 "weight-decay", "0", "weight decay; biases and normalisations are left out")
                 .fixed_with(FixedWith::optimizer))
        .add(&OptimizerOptions::ema,
             number_option("ema",
                           "0",
                           "decay of a moving average of the weights, that validation and the "
                           "saved models use (0.999); 0: none",
                           0,
                           largest_decay)
                 .fixed_with(FixedWith::optimizer));
}

OptionsOf<ScheduleOptions> schedule_options() {
    return OptionsOf<ScheduleOptions>()
        .heading(heading)
        .add(&ScheduleOptions::lr,
             number_option("lr", "0.001", "learning rate; with a schedule, the highest one")
                 .fixed_with(FixedWith::schedule))
        .add(&ScheduleOptions::name,
             text_option("lr-scheduler", "NAME", "fixed", "schedule of the learning rate")
                 .fixed_with(FixedWith::schedule))
        .add(&ScheduleOptions::warmup_updates,
             whole_number_option("warmup-updates", "0", "length of the linear warm-up [updates]")
                 .fixed_with(FixedWith::schedule))
        .add(&ScheduleOptions::warmup_init_lr,
             number_option("warmup-init-lr", "0", "learning rate at the start of warm-up")
                 .fixed_with(FixedWith::schedule))
        .add(&ScheduleOptions::total_updates,
             whole_number_option(
                 "total-num-update", "0", "update at which decay ends; 0: the last one of the run")
                 .fixed_with(FixedWith::schedule));
}

}  // namespace hetseq
