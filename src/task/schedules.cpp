#include "hetseq/optim/schedule.hpp"
#include "hetseq/task/parts.hpp"

#include "builtin_parts.hpp"

namespace hetseq {

namespace {

const Option<double>& end_learning_rate() {
    static const auto option =
        number_option("end-learning-rate", "0", "where the decay ends").ignored_elsewhere();
    return option;
}

const Option<double>& power() {
    static const auto option =
        positive_number_option("power", "1", "of the part of the updates that is left")
            .ignored_elsewhere();
    return option;
}

const Option<double>& lr_shrink() {
    static const auto option =
        positive_number_option("lr-shrink", "0.7", "factor of the learning rate")
            .ignored_elsewhere();
    return option;
}

const Option<std::int64_t>& lr_step_epochs() {
    static const auto option =
        whole_number_option("lr-step-epochs", "1", "epochs between factors", 1).ignored_elsewhere();
    return option;
}

Schedule fixed(const PartOptions& options) {
    return fixed_schedule(options.schedule);
}

Schedule inverse_sqrt(const PartOptions& options) {
    return inverse_sqrt_schedule(options.schedule);
}

Schedule polynomial_decay(const PartOptions& options) {
    ScheduleOptions own = options.schedule;
    own.end_lr = options.get(end_learning_rate());
    own.power = options.get(power());
    return polynomial_decay_schedule(own);
}

Schedule cosine(const PartOptions& options) {
    ScheduleOptions own = options.schedule;
    own.end_lr = options.get(end_learning_rate());
    return cosine_schedule(own);
}

Schedule step(const PartOptions& options) {
    ScheduleOptions own = options.schedule;
    own.gamma = options.get(lr_shrink());
    own.step_epochs = options.get(lr_step_epochs());
    return step_schedule(own);
}

Schedule exponential(const PartOptions& options) {
    ScheduleOptions own = options.schedule;
    own.gamma = options.get(lr_shrink());
    return exponential_schedule(own);
}

}  // namespace

void add_schedules(Parts& parts) {
    parts.schedules.add("fixed", fixed);
    parts.schedules.add("polynomial_decay", polynomial_decay, {end_learning_rate(), power()});
    parts.schedules.add("inverse_sqrt", inverse_sqrt);
    parts.schedules.add("step", step, {lr_shrink(), lr_step_epochs()});
    parts.schedules.add("exponential", exponential, {lr_shrink()});
    parts.schedules.add("cosine", cosine, {end_learning_rate()});
}

}  // namespace hetseq
