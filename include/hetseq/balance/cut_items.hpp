#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hetseq {

/// Cuts items, in their order, into one contiguous piece for each rank so that the pieces' costs
/// are as `units_by_rank`, and returns the pieces' numbers of items. `item_costs` are >= 0, in
/// units of one's choice (alpha tokens + beta length^2 for text); `units_by_rank` are >= 0, as
/// allocated.
///
/// Each border lies where the items' cost up to it is nearest to the ranks' share up to it, so that
/// no piece's cost differs from its rank's share of the total by more than the largest item; no cut
/// has no piece above its share. A rank with 0 units gets no items. A function of these numbers
/// alone, in additions and multiplications only: all ranks compute the same, and a recorded
/// allocation replays. Throws InternalError where there are items but no units.
std::vector<std::int64_t> cut_items(std::span<const double> item_costs,
                                    std::span<const std::int64_t> units_by_rank);

}  // namespace hetseq
