#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hetseq {

/// Divides `items` >= 0 equal items over ranks in proportion to their shares, as well as whole
/// items allow: the largest ratio of a rank's items to its share is as small as it can be
/// (D'Hondt's method). So where the shares would end together, the last rank ends as early as
/// possible. Ties go to the lower rank; a share of 0 gets none. Some share is positive. The result
/// sums to `items`.
std::vector<std::int64_t> divide_items(std::span<const std::int64_t> shares, std::int64_t items);

}  // namespace hetseq
