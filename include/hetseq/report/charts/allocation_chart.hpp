#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

/// How full batches are cut from an update (counted from 1) on.
struct AllocationFrom {
    std::int64_t update = 1;
    std::vector<std::int64_t> units;  // by rank
};

struct AllocationChart {
    std::string title;
    std::vector<AllocationFrom> allocations;  // by rising update
    std::int64_t last_update = 1;
    std::vector<std::string> ranks;  // what to call them in tool tips; may be fewer than there are
    std::string unit = "units of cost";  // of the allocations
};

/// An HTML figure: the ranks' shares, stacked, over the updates. Where there are more changes than
/// can be drawn, the latest one stands for its neighbours. Empty without allocations.
std::string allocation_chart(const AllocationChart& chart);

}  // namespace hetseq
