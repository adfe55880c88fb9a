#pragma once

#include <cstdint>
#include <string>

namespace hetseq {

struct Options;
struct StartingPoint;
struct TrainingProgress;

/// How many updates a run has, from its first one, and how many its schedule spans.
struct RunLength {
    std::int64_t updates = 0;
    std::int64_t schedule_updates = 0;
    std::string schedule_ended_by = {};  // the option, with its value
};

/// Throws BadConfig when neither --max-update nor --max-epoch says how long to train.
RunLength run_length(const Options& options,
                     std::int64_t updates_per_epoch,
                     const StartingPoint& start);

/// True if nothing is left to do, by updates or by patience.
bool is_finished(const Options& options, const RunLength& length, const TrainingProgress& progress);

}  // namespace hetseq
