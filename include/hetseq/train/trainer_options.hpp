#pragma once

#include <cstdint>

#include "hetseq/options/options_of.hpp"
#include "hetseq/train/validation/best_by.hpp"

namespace hetseq {

/// The reaction to replicas that differ by more than rounding.
enum class DriftPolicy { warn, sync, abort };

/// What the user says of the training itself.
struct TrainerOptions {
    double clip_norm = 0;                    // of the gradient's 2-norm; 0: no clipping
    std::int64_t staleness = 0;              // updates that gradients may be late
    std::int64_t max_skips = 100;            // updates in a row whose loss is not finite
    std::int64_t valid_interval = 0;         // updates; 0: at the end of each epoch
    std::int64_t save_interval = 0;          // epochs between checkpoints; 0: not by epochs
    std::int64_t save_interval_updates = 0;  // between checkpoints; 0: not by updates
    std::int64_t stop_after = 0;             // updates of this start; 0: never
    BestBy best_by = {};                     // which validation is the best
    std::int64_t patience = 0;  // validations without a better one, after which it stops; 0: none
    std::int64_t check_interval = 0;  // updates between comparisons of the replicas; 0: none
    DriftPolicy drift = DriftPolicy::warn;
};

OptionsOf<TrainerOptions> trainer_options();

}  // namespace hetseq
