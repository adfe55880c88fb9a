#pragma once

#include <cstdint>

#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/data/order/global_order.hpp"

namespace hetseq {

class Corpus;

/// The size of global batches: `samples`, or `units` of samples of unequal length; one of both is
/// 0.
struct BatchSize {
    std::int64_t samples = 0;
    std::int64_t units = 0;
};

/// The plan of `corpus`, which must outlive it, for a loader of the same seed and shuffling. Throws
/// BadConfig where a batch of so many units is smaller than the longest sample, and where samples
/// of one shape are to be counted in units.
BatchPlan make_batch_plan(Corpus& corpus,
                          const BatchSize& size,
                          std::uint64_t seed,
                          Shuffle shuffle = Shuffle::yes);

}  // namespace hetseq
