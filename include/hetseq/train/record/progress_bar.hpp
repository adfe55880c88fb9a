#pragma once

#include <cstdint>
#include <string>

namespace hetseq {

/// The progress of a run at one update.
struct ProgressNow {
    std::int64_t update = 0;
    std::int64_t total_updates = 0;
    double loss = 0;
    double units_per_second = 0;
    std::string unit = "samples";
    double seconds_left = 0;
};

/// "[=====     ]  50 %  1407/2814  loss 0.31  2705 samples/s  ETA 0:33", cut to fewer characters
/// than `columns`.
std::string progress_text(const ProgressNow& now, int columns);

/// A line on the terminal that follows a run. Rate and remaining time come from the last updates.
class ProgressBar {
public:
    /// `columns`: of the terminal; 0: nothing is drawn.
    ProgressBar(std::int64_t total_updates, int columns, std::string unit = "samples");

    /// After each update; draws at most ten times a second.
    void advance(std::int64_t update, double loss, std::int64_t units, double step_ms);
    void erase();

private:
    std::int64_t total_updates_;
    int columns_;
    std::string unit_;
    // Of the last updates, the older ones with less weight.
    double updates_ = 0, units_ = 0, ms_ = 0;
    double drawn_s_ = 0;  // monotonic clock
};

}  // namespace hetseq
