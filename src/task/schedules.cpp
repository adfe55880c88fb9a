#include "hetseq/optim/schedule.hpp"
#include "hetseq/task/builtin_parts.hpp"
#include "hetseq/task/parts.hpp"

namespace hetseq {

void add_schedules(Parts& parts) {
    parts.schedules.add("fixed", fixed_schedule);
    parts.schedules.add("polynomial_decay", polynomial_decay_schedule);
    parts.schedules.add("inverse_sqrt", inverse_sqrt_schedule);
    parts.schedules.add("step", step_schedule);
    parts.schedules.add("exponential", exponential_schedule);
    parts.schedules.add("cosine", cosine_schedule);
}

}  // namespace hetseq
