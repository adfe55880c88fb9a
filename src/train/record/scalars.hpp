#pragma once

#include <vector>

#include "hetseq/train/record/scalar_events.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

/// The numbers of a line of metrics.jsonl that change with its update: "train/loss",
/// "valid/accuracy", and by rank "units/rank-0" and "compute_ms/rank-0". None of an event.
std::vector<Scalar> scalars_of(const nlohmann::ordered_json& line);

}  // namespace hetseq
