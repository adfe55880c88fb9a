#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "hetseq/options/options_of.hpp"

namespace hetseq {

/// The learning rate of update `update` (counted from 0) in epoch `epoch`. Pure.
using Schedule = std::function<double(std::int64_t update, std::int64_t epoch)>;

struct ScheduleOptions {
    std::string name = "fixed";  // fixed, polynomial_decay, inverse_sqrt, step, exponential, cosine
    double lr = 1e-3;            // peak
    std::int64_t warmup_updates = 0;  // w: linear from warmup_init_lr to lr
    double warmup_init_lr = 0;
    std::int64_t total_updates = 0;               // polynomial_decay, cosine: where the decay ends
    std::string ended_by = "--total-num-update";  // what gave total_updates, as messages name it
    double end_lr = 0;                            // polynomial_decay, cosine
    double power = 1;                             // polynomial_decay
    double gamma = 0.7;                           // step, exponential: factor
    std::int64_t step_epochs = 1;                 // step: epochs between factors
};

/// Those that all schedules share; each declares its own (hetseq/task/parts.hpp).
OptionsOf<ScheduleOptions> schedule_options();

/// All begin with warm-up: warmup_init_lr + (lr - warmup_init_lr) u / w for update u < w. Then,
/// with t = min(1, (u - w) / (total_updates - w)) and epoch e, as each says. Throw BadConfig,
/// naming the option, for a value out of range.

/// lr
Schedule fixed_schedule(const ScheduleOptions& options);
/// end_lr + (lr - end_lr) (1 - t)^power
Schedule polynomial_decay_schedule(const ScheduleOptions& options);
/// lr sqrt(max(w, 1) / max(u, 1)), as in fairseq
Schedule inverse_sqrt_schedule(const ScheduleOptions& options);
/// lr gamma^floor(e / step_epochs)
Schedule step_schedule(const ScheduleOptions& options);
/// lr gamma^e
Schedule exponential_schedule(const ScheduleOptions& options);
/// end_lr + (lr - end_lr) (1 + cos(pi t)) / 2
Schedule cosine_schedule(const ScheduleOptions& options);

}  // namespace hetseq
