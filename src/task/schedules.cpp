#include "builtin_parts.hpp"

#include "hetseq/optim/schedule.hpp"
#include "hetseq/task/parts.hpp"

namespace hetseq {

namespace {

SchedulePart with_common_options(Schedule (*make)(const ScheduleOptions&)) {
    return [make](const PartOptions& options) { return make(options.schedule); };
}

}  // namespace

void add_schedules(Parts& parts) {
    parts.schedules.add("fixed", with_common_options(fixed_schedule));
    parts.schedules.add("polynomial_decay", with_common_options(polynomial_decay_schedule));
    parts.schedules.add("inverse_sqrt", with_common_options(inverse_sqrt_schedule));
    parts.schedules.add("step", with_common_options(step_schedule));
    parts.schedules.add("exponential", with_common_options(exponential_schedule));
    parts.schedules.add("cosine", with_common_options(cosine_schedule));
}

}  // namespace hetseq
