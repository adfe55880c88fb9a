#pragma once

#include <string>
#include <vector>

#include "hetseq/util/rank_time.hpp"
#include "hetseq/train/record/scalar_events.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

/// "rank_compute_ms": the key in metrics.jsonl of what each rank times.
inline std::string rank_time_key(const RankTimeText& text) {
    return "rank_" + std::string(text.key);
}

/// The numbers of a line of metrics.jsonl that change with its update: "train/loss",
/// "valid/accuracy", and by rank "units/rank-0" and "compute_ms/rank-0". None of an event.
std::vector<Scalar> scalars_of(const nlohmann::ordered_json& line);

}  // namespace hetseq
