#include "hetseq/session/run_length.hpp"

#include <algorithm>
#include <limits>

#include "hetseq/util/error.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/resume.hpp"

namespace hetseq {

namespace {

std::int64_t updates_to_run(const Options& options,
                            std::int64_t updates_per_epoch,
                            std::int64_t origin) {
    if (options.max_update == 0 && options.max_epoch == 0)
        throw BadConfig("the length of the training is not given",
                        "neither --max-update nor --max-epoch is set",
                        "give one of them");
    constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
    const std::int64_t by_epoch =
        options.max_epoch > 0 ? origin + options.max_epoch * updates_per_epoch : unlimited;
    return std::min(by_epoch, options.max_update > 0 ? options.max_update : unlimited);
}

}  // namespace

// A continued schedule keeps its span, even if the run was given more updates.
RunLength run_length(const Options& options,
                     std::int64_t updates_per_epoch,
                     const StartingPoint& start) {
    const TrainingProgress& progress = start.progress;
    RunLength length;
    length.updates = updates_to_run(options, updates_per_epoch, progress.order_origin);
    length.schedule_ended_by = length.updates == options.max_update
                                   ? "--max-update " + std::to_string(options.max_update)
                                   : "--max-epoch " + std::to_string(options.max_epoch);
    if (options.parts.schedule.total_updates > 0) {
        length.schedule_updates = options.parts.schedule.total_updates;
        length.schedule_ended_by = "--total-num-update " + std::to_string(length.schedule_updates);
    } else if (start.continued && progress.schedule_origin < progress.updates)
        length.schedule_updates = start.continued->schedule_updates;
    else
        length.schedule_updates = length.updates - progress.schedule_origin;
    return length;
}

bool is_finished(const Options& options,
                 const RunLength& length,
                 const TrainingProgress& progress) {
    return progress.updates >= length.updates ||
           (options.trainer.patience > 0 &&
            progress.validations_since_best >= options.trainer.patience);
}

}  // namespace hetseq
