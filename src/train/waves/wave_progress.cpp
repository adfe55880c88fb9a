#include "hetseq/train/waves/wave_progress.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hetseq {

std::int64_t first_wave(const TrainingProgress& progress) {
    return progress.updates + std::ssize(progress.pending);
}

TrainingProgress without_cuts_to_come(TrainingProgress progress) {
    AllocationsByUpdate& cuts = progress.allocations;
    const auto counted = std::distance(cuts.upper_bound(first_wave(progress)), cuts.end());
    progress.reallocations = std::max<std::int64_t>(0, progress.reallocations - counted);
    cuts.erase(cuts.lower_bound(first_wave(progress)), cuts.end());
    return progress;
}

TrainingProgress progress_of_cuts(TrainingProgress progress) {
    progress.updates = first_wave(progress);
    return progress;
}

}  // namespace hetseq
