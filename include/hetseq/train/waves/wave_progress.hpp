#pragma once

#include <cstdint>

#include "hetseq/state/training_state.hpp"

namespace hetseq {

/// The first update that is not computed yet: of a run with staleness, behind those that wait.
std::int64_t first_wave(const TrainingProgress& progress);

/// Without the cuts of batches whose update is still to be computed: the continued run makes them
/// again by the same replay, or never.
TrainingProgress without_cuts_to_come(TrainingProgress progress);

/// With `first_wave` for its updates: cuts are counted by what was computed.
TrainingProgress progress_of_cuts(TrainingProgress progress);

}  // namespace hetseq
