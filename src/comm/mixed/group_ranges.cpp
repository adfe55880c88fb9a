#include "group_ranges.hpp"

#include <algorithm>

#include "comm/joined_ranges.hpp"

namespace hetseq {

GroupRanges group_ranges(const std::vector<int>& group, const std::vector<OwnedRange>& ranges) {
    constexpr int first = 0;
    GroupRanges all;
    for (const OwnedRange& range : ranges) {
        const auto found = std::find(group.begin(), group.end(), range.owner);
        if (found == group.end()) {
            add_joined(all.from_others, {first, range.begin, range.length});
            continue;
        }
        const auto place = static_cast<int>(found - group.begin());
        add_joined(all.own, {place, range.begin, range.length});
        if (place != first)
            add_joined(all.to_members, {first, range.begin, range.length});
    }
    return all;
}

}  // namespace hetseq
