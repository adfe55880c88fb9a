#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hetseq {

/// Cuts items, in their order, into one contiguous piece for each rank, so that the pieces' costs
/// are in proportion to `units_by_rank`. Returns the number of items in each piece. `item_costs`
/// are >= 0, in any unit (alpha tokens + beta length^2 for text), and their sum does not overflow;
/// `units_by_rank` are >= 0, as allocated.
///
/// Each border lies where the cost of the items before it is nearest to the share of the ranks
/// before it. So no piece's cost differs from its rank's share of the total by more than the
/// largest item. In any cut, at least one piece is at or above its share. A rank with 0 units gets
/// no items. All arithmetic is exact, so ranks on processors of any make compute the same, and a
/// recorded allocation replays. Throws InternalError where there are items but no units.
std::vector<std::int64_t> cut_items(std::span<const std::int64_t> item_costs,
                                    std::span<const std::int64_t> units_by_rank);

}  // namespace hetseq
