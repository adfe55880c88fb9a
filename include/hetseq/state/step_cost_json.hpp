#pragma once

#include "hetseq/balance/step_cost.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

/// The object that `step_cost_json` writes.
nlohmann::ordered_json step_cost_to_json(const StepCost& cost);
/// Reads it. Throws BadData and the library's exceptions.
StepCost step_cost_from_json(const nlohmann::json& json);

}  // namespace hetseq
