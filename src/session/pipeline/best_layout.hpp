#pragma once

#include <optional>
#include <vector>

#include "hetseq/session/pipeline/layout_choice.hpp"

#include "chain_measurement.hpp"
#include "layout_problem.hpp"
#include "measured_ranks.hpp"

namespace hetseq {

struct RunSettings;

/// What is asked for.
struct AskedLayout {
    std::vector<std::vector<int>> workers = {};  // by worker; empty: any layout
    std::optional<PipelineLayout> given = {};    // their cuts, where these are given
};

/// The layout that is predicted to be fastest, over all sizes of micro-batches. Where memory is too
/// small for a fast one with the copies that checkpoints are written from, one without them.
/// `costs`: by size of `sizes`. Throws BadConfig, with the numbers, where memory allows none.
LayoutChoice best_layout(const RunSettings& settings,
                         const AskedLayout& asked,
                         const std::vector<MeasuredSize>& sizes,
                         const CostsBySize& costs,
                         const MeasuredRanks& ranks);

}  // namespace hetseq
