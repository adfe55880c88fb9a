#include "hetseq/balance/cut_items.hpp"

#include <numeric>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

using Wide = __int128;

std::int64_t checked_total(std::span<const std::int64_t> values) {
    std::int64_t total = 0;
    for (const std::int64_t value : values)
        HETSEQ_ASSERT(value >= 0 && !__builtin_add_overflow(total, value, &total));
    return total;
}

}  // namespace

std::vector<std::int64_t> cut_items(std::span<const std::int64_t> item_costs,
                                    std::span<const std::int64_t> units_by_rank) {
    const std::int64_t total = checked_total(item_costs);
    const std::int64_t total_units = checked_total(units_by_rank);
    HETSEQ_ASSERT(item_costs.empty() || total_units > 0);
    std::vector<std::int64_t> pieces(units_by_rank.size());
    std::int64_t units = 0;  // of the ranks up to this one
    std::size_t end = 0;     // of this rank's piece
    std::int64_t cost = 0;   // of the items before `end`
    for (std::size_t r = 0; r < pieces.size(); ++r) {
        if (units_by_rank[r] == 0)
            continue;
        units += units_by_rank[r];
        const bool last = units == total_units;
        // An item belongs to the rank whose share, total * units / total_units, contains the item's
        // middle.
        const auto belongs = [&](std::int64_t item) {
            return (2 * Wide{cost} + item) * total_units < 2 * Wide{total} * units;
        };
        for (; end < item_costs.size() && (last || belongs(item_costs[end])); ++end) {
            cost += item_costs[end];
            ++pieces[r];
        }
    }
    return pieces;
}

}  // namespace hetseq
