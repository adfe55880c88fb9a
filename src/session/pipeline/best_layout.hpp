#pragma once

#include <optional>
#include <vector>

#include "hetseq/balance/layout/layout_problem.hpp"
#include "hetseq/session/pipeline/layout_choice.hpp"

#include "chain_measurement.hpp"
#include "measured_ranks.hpp"

namespace hetseq {

struct RunSettings;

/// What is asked for.
struct AskedLayout {
    std::vector<std::vector<int>> workers = {};  // by worker; empty: any layout
    std::optional<PipelineLayout> given = {};    // their cuts, where these are given
};

/// The layout that is predicted to be fastest, over all sizes of micro-batches. `sizes` are those
/// of `problem`. Throws BadConfig, with the numbers, where memory allows none.
LayoutChoice best_layout(const LayoutProblem& problem,
                         const AskedLayout& asked,
                         const std::vector<MeasuredSize>& sizes,
                         const MeasuredRanks& ranks,
                         const RunSettings& settings);

}  // namespace hetseq
