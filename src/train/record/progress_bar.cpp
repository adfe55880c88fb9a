#include "hetseq/train/record/progress_bar.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/process/status_line.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

constexpr int width = 20;  // of the bar [characters]
constexpr double least_interval_s = 0.1;
constexpr double fading = 0.98;  // of an update's weight at the next

}  // namespace

std::string progress_text(const ProgressNow& now, int columns) {
    const double done = static_cast<double>(now.update) /
                        static_cast<double>(std::max<std::int64_t>(1, now.total_updates));
    const auto filled = static_cast<std::size_t>(std::clamp(done, 0.0, 1.0) * width);
    char percent[16];
    std::snprintf(percent, sizeof percent, "%3.0f %%", std::floor(100 * done));
    std::string text = "[" + std::string(filled, '=') + std::string(width - filled, ' ') + "] " +
                       percent + "  " + std::to_string(now.update) + "/" +
                       std::to_string(now.total_updates) + "  loss " + format_number(now.loss) +
                       "  " + format_number(now.units_per_second) + " " + now.unit + "/s  ETA " +
                       format_duration(now.seconds_left);
    // A line that fills the last column would begin the next line.
    return text.substr(0, static_cast<std::size_t>(std::max(columns - 1, 0)));
}

ProgressBar::ProgressBar(std::int64_t total_updates, int columns, std::string unit)
    : total_updates_{total_updates}, columns_{columns}, unit_{std::move(unit)} {}

void ProgressBar::advance(std::int64_t update, double loss, std::int64_t units, double step_ms) {
    if (columns_ == 0)
        return;
    updates_ = fading * updates_ + 1;
    units_ = fading * units_ + static_cast<double>(units);
    ms_ = fading * ms_ + step_ms;
    const double now_s = monotonic_seconds();
    if (now_s - drawn_s_ < least_interval_s)
        return;
    drawn_s_ = now_s;
    const double left = static_cast<double>(total_updates_ - update);
    status_line::show(progress_text({.update = update,
                                     .total_updates = total_updates_,
                                     .loss = loss,
                                     .units_per_second = 1000 * units_ / ms_,
                                     .unit = unit_,
                                     .seconds_left = left * ms_ / updates_ / 1000},
                                    columns_));
}

void ProgressBar::erase() {
    if (columns_ > 0)
        status_line::erase();
}

}  // namespace hetseq
