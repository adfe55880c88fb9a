#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hetseq/util/rank_time.hpp"
#include "hetseq/data/loaded_share.hpp"
#include "hetseq/state/training_state.hpp"

namespace hetseq {

/// What is told of an update when it was applied, or left out.
struct UpdateFigures {
    PendingUpdate told = {};                  // the same on all ranks
    std::vector<double> compute_ms = {};      // by rank, of the update that was computed before
    std::int64_t cut_since = 0;               // update from which full batches were cut so
    LoadedShare::Padding padding = {};        // of this rank's share
    RankTimes times = {};                     // of this rank; the optimizer's comes later
    std::optional<double> finish_ratio = {};  // as in TimedUpdate
};

}  // namespace hetseq
