#pragma once

#include "hetseq/balance/layout/measured_chain.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

nlohmann::ordered_json measured_chain_to_json(const MeasuredChain& chain);
/// Throws the library's exceptions, and BadData for numbers that nothing measures.
MeasuredChain measured_chain_from_json(const nlohmann::json& json);

}  // namespace hetseq
