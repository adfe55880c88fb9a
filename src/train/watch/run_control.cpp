#include "hetseq/train/watch/run_control.hpp"

#include <limits>
#include <system_error>

#include "hetseq/util/clock.hpp"

namespace hetseq {

namespace {

constexpr double look_every_s = 1;        // at the stop file, which may lie on a slow file system
constexpr double checkpoint_times = 1.5;  // of the last one's duration are kept free

}  // namespace

std::string to_string(StopReason reason) {
    switch (reason) {
        case StopReason::none:
            return "nothing";
        case StopReason::signal:
            return "a signal";
        case StopReason::stop_file:
            return "the file STOP";
        case StopReason::time_limit:
            return "the time limit";
        case StopReason::stop_after:
            return "--stop-after";
        case StopReason::patience:
            return "validation, which no longer improves";
    }
    return "";
}

StopReason Requests::stop() const noexcept {
    if (signal > 0)
        return StopReason::signal;
    if (stop_file > 0)
        return StopReason::stop_file;
    return time_limit > 0 ? StopReason::time_limit : StopReason::none;
}

RunControl::RunControl(const RunControlOptions& options)
    : options_{options},
      last_save_{monotonic_seconds()},
      last_signal_{-std::numeric_limits<double>::infinity()} {}

Requests RunControl::requests(double next_update_s, double checkpoint_s) {
    Requests requests;
    const double now = monotonic_seconds();
    requests.signal = signal_inbox::stop_signal() != 0 ? 1 : 0;
    requests.stop_file = stop_file_exists() ? 1 : 0;
    const bool may_end = asked_++ >= options_.least_updates;
    if (may_end && options_.watches_clock && options_.time_limit_s > 0) {
        const double left = options_.start_seconds + options_.time_limit_s - now;
        requests.time_limit = left < next_update_s + checkpoint_times * checkpoint_s ? 1 : 0;
    }
    const int asked = signal_inbox::checkpoint_requests();
    const bool due = options_.watches_clock && now - last_save_ >= save_every_s_;
    const bool is_known = now - last_signal_ < options_.same_request_s;
    requests.save_signal = asked > checkpoints_asked_ && !is_known ? 1 : 0;
    requests.save_clock = due ? 1 : 0;
    checkpoints_asked_ = asked;
    return requests;
}

bool RunControl::stop_file_exists() {
    const double now = monotonic_seconds();
    if (options_.stop_file.empty() || stop_file_seen_ || now - last_look_ < look_every_s)
        return stop_file_seen_;
    last_look_ = now;
    std::error_code ignored;
    stop_file_seen_ = std::filesystem::exists(options_.stop_file, ignored);
    return stop_file_seen_;
}

void RunControl::hear(const Requests& of_all) {
    if (of_all.save_signal > 0)
        last_signal_ = monotonic_seconds();
}

void RunControl::saved(bool answers) {
    last_save_ = monotonic_seconds();
    if (answers)
        checkpoints_asked_ = signal_inbox::checkpoint_requests();
}

void RunControl::end() const noexcept {
    std::error_code ignored;
    if (!options_.stop_file.empty())
        std::filesystem::remove(options_.stop_file, ignored);
}

}  // namespace hetseq
