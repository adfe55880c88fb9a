#include "hetseq/balance/cut_items.hpp"

#include <cmath>
#include <numeric>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

double checked_total(std::span<const double> item_costs) {
    double total = 0;
    for (const double cost : item_costs) {
        HETSEQ_ASSERT(std::isfinite(cost) && cost >= 0);
        total += cost;
    }
    return total;
}

std::int64_t checked_total(std::span<const std::int64_t> units_by_rank) {
    for (const std::int64_t units : units_by_rank)
        HETSEQ_ASSERT(units >= 0);
    return std::accumulate(units_by_rank.begin(), units_by_rank.end(), std::int64_t{0});
}

}  // namespace

std::vector<std::int64_t> cut_items(std::span<const double> item_costs,
                                    std::span<const std::int64_t> units_by_rank) {
    const double total = checked_total(item_costs);
    const std::int64_t total_units = checked_total(units_by_rank);
    HETSEQ_ASSERT(item_costs.empty() || total_units > 0);
    std::vector<std::int64_t> pieces(units_by_rank.size());
    std::int64_t units = 0;  // of the ranks up to this one
    std::size_t end = 0;     // of this rank's piece
    double cost = 0;         // of the items before `end`
    for (std::size_t r = 0; r < pieces.size(); ++r) {
        if (units_by_rank[r] == 0)
            continue;
        units += units_by_rank[r];
        const double share =
            total * (static_cast<double>(units) / static_cast<double>(total_units));
        const bool last = units == total_units;
        // An item belongs to the rank whose share contains the item's middle.
        for (; end < item_costs.size() && (last || cost + item_costs[end] / 2 < share); ++end) {
            cost += item_costs[end];
            ++pieces[r];
        }
    }
    return pieces;
}

}  // namespace hetseq
