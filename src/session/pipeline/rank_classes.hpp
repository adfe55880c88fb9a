#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "hetseq/train/pipeline/unit_costs.hpp"

namespace hetseq {

struct RunSettings;

/// Ranks that are interchangeable: with like devices, memory and links, that were measured to take
/// about as long. Those that share a host with others of the worker have other links than the rest.
struct RankClasses {
    std::vector<std::vector<int>> ranks;  // by class
    // By class: the number of the host that its ranks share with others; none: each has its own.
    std::vector<std::optional<std::size_t>> hosts;
};

/// Of the ranks of `worker`. `costs`: by rank and unit.
RankClasses rank_classes(const RunSettings& settings,
                         const std::vector<int>& worker,
                         const std::vector<std::vector<UnitCost>>& costs);

/// `ranks` in groups of like speed, the fastest first: each takes 1.15 times as long as the fastest
/// of its group at the most, or more where there would be more than 4 groups. `ms`: by rank.
std::vector<std::vector<int>> groups_of_like_speed(const std::vector<int>& ranks,
                                                   const std::vector<double>& ms);

}  // namespace hetseq
