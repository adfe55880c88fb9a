#pragma once

#include <cstdint>

#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/data/order/global_order.hpp"

namespace hetseq {

class Corpus;

/// The size of a global batch, in samples or, where they have unequal lengths, in units. One of the
/// two is 0.
struct BatchSize {
    std::int64_t samples = 0;
    std::int64_t units = 0;
};

/// Plans the batches of `corpus`, which must outlive the plan. The loader must have the same seed
/// and shuffling. Throws BadConfig if the longest sample has more units than a batch, or if units
/// are given for samples of one shape.
BatchPlan make_batch_plan(Corpus& corpus,
                          const BatchSize& size,
                          std::uint64_t seed,
                          Shuffle shuffle = Shuffle::yes);

}  // namespace hetseq
