#pragma once

#include <span>

#include "hetseq/session/step_counts.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

/// What `hetseq bench roofline` prints after its settings: the counts of the largest pass and of
/// the rest of the update, what they bound on each of `gpus`, which compute in `precision`, and the
/// operators with most work.
nlohmann::ordered_json roofline_json(const StepCounts& counts,
                                     Precision precision,
                                     std::span<const GpuPeaks> gpus);

}  // namespace hetseq
