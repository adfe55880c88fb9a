#pragma once

#include <cstdint>
#include <vector>

#include "hetseq/balance/pipeline/chain_problem.hpp"
#include "hetseq/train/pipeline/link_costs.hpp"
#include "hetseq/train/pipeline/unit_costs.hpp"

#include "chain_memory.hpp"
#include "rank_classes.hpp"

namespace hetseq {

/// What was measured of a virtual worker's ranks, but for the costs of units.
struct MeasuredRanks {
    RankClasses classes;
    std::vector<std::vector<LinkCost>> links;  // [from][to], of all ranks
    ChainMemory memory;
    std::vector<bool> trains_up_to;  // by unit: any parameter in front of it, or its own
    std::vector<TiedUnits> tied;
    bool on_host = true;  // what is kept until backward lies in the host's memory
    std::vector<double> optimizer_ms_per_mb = {};  // by rank, of values
    double sums_factor = 1;                        // what an all-reduce takes, of what links say
    std::vector<double> message_ms_per_mb = {};    // by rank, as ChainDevices; empty: nothing

    /// The median of these ranks' `message_ms_per_mb`.
    double message_ms(const std::vector<int>& of) const;
};

/// The cut that is asked for. `costs`: by rank and unit, of micro-batches of one size,
/// `micro_batches` of which are a full batch. `ranks` outlives it.
ChainProblem chain_problem(const MeasuredRanks& ranks,
                           const std::vector<std::vector<UnitCost>>& costs,
                           std::int64_t micro_batches);

}  // namespace hetseq
