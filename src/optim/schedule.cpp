#include "hetseq/optim/schedule.hpp"

#include <algorithm>
#include <cmath>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

constexpr double pi = 3.141592653589793238463;

void require(bool condition, const std::string& flag, const std::string& why) {
    if (!condition)
        throw BadConfig("bad value of --" + flag, why, "change it");
}

bool is_rate(double value) {
    return std::isfinite(value) && value >= 0;
}

void check_common(const ScheduleOptions& options) {
    require(is_rate(options.lr), "lr", "a learning rate is a finite number >= 0");
    require(options.warmup_updates >= 0, "warmup-updates", "a count of updates is >= 0");
    require(is_rate(options.warmup_init_lr),
            "warmup-init-lr",
            "a learning rate is a finite number >= 0");
}

void check_decay_to_end(const ScheduleOptions& options) {
    if (options.total_updates <= options.warmup_updates)
        throw BadConfig("the learning rate has no update left to decay in",
                        "the schedule ends at update " + std::to_string(options.total_updates) +
                            ", by " + options.ended_by + ", and --warmup-updates is " +
                            std::to_string(options.warmup_updates),
                        "to try a configuration, keep its length and give --stop-after N or "
                        "--dry-run; for a shorter schedule lower --warmup-updates too");
    require(
        is_rate(options.end_lr), "end-learning-rate", "a learning rate is a finite number >= 0");
}

void check_gamma(const ScheduleOptions& options) {
    require(std::isfinite(options.gamma) && options.gamma > 0,
            "lr-shrink",
            "the factor of the learning rate is a finite number > 0");
}

/// Linear from warmup_init_lr at update 0 to lr at update `warmup_updates`, then `after`.
template <class After>
Schedule with_warmup(const ScheduleOptions& options, After after) {
    return [options, after](std::int64_t update, std::int64_t epoch) {
        if (update >= options.warmup_updates)
            return after(update, epoch);
        const double done = static_cast<double>(update) / options.warmup_updates;
        return options.warmup_init_lr + (options.lr - options.warmup_init_lr) * done;
    };
}

/// From 0 at the end of warm-up to 1 at `total_updates`.
double decay_progress(const ScheduleOptions& options, std::int64_t update) {
    const auto span = static_cast<double>(options.total_updates - options.warmup_updates);
    return std::min(1.0, static_cast<double>(update - options.warmup_updates) / span);
}

}  // namespace

Schedule fixed_schedule(const ScheduleOptions& options) {
    check_common(options);
    return with_warmup(options, [lr = options.lr](std::int64_t, std::int64_t) { return lr; });
}

Schedule polynomial_decay_schedule(const ScheduleOptions& options) {
    check_common(options);
    check_decay_to_end(options);
    require(std::isfinite(options.power) && options.power > 0,
            "power",
            "the exponent of the decay is a finite number > 0");
    return with_warmup(options, [options](std::int64_t update, std::int64_t) {
        const double left = 1 - decay_progress(options, update);
        return options.end_lr + (options.lr - options.end_lr) * std::pow(left, options.power);
    });
}

Schedule inverse_sqrt_schedule(const ScheduleOptions& options) {
    check_common(options);
    return with_warmup(options, [options](std::int64_t update, std::int64_t) {
        const double peak = static_cast<double>(std::max<std::int64_t>(options.warmup_updates, 1));
        return options.lr *
               std::sqrt(peak / static_cast<double>(std::max<std::int64_t>(update, 1)));
    });
}

Schedule step_schedule(const ScheduleOptions& options) {
    check_common(options);
    check_gamma(options);
    require(options.step_epochs >= 1, "lr-step-epochs", "a count of epochs is >= 1");
    return with_warmup(options, [options](std::int64_t, std::int64_t epoch) {
        return options.lr *
               std::pow(options.gamma, static_cast<double>(epoch / options.step_epochs));
    });
}

Schedule exponential_schedule(const ScheduleOptions& options) {
    check_common(options);
    check_gamma(options);
    return with_warmup(options, [options](std::int64_t, std::int64_t epoch) {
        return options.lr * std::pow(options.gamma, static_cast<double>(epoch));
    });
}

Schedule cosine_schedule(const ScheduleOptions& options) {
    check_common(options);
    check_decay_to_end(options);
    return with_warmup(options, [options](std::int64_t update, std::int64_t) {
        const double left = (1 + std::cos(pi * decay_progress(options, update))) / 2;
        return options.end_lr + (options.lr - options.end_lr) * left;
    });
}

}  // namespace hetseq
