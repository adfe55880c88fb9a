#include "hetseq/data/order/batch_items.hpp"

#include <algorithm>
#include <numeric>

namespace hetseq {

std::int64_t BatchItems::total_units() const {
    return std::accumulate(units.begin(), units.end(), std::int64_t{0});
}

std::vector<double> ItemCost::of(const BatchItems& items) const {
    std::vector<double> costs(items.samples.size(), 0);
    for (const std::vector<std::int32_t>& lengths : items.lengths)
        for (std::size_t i = 0; i < costs.size(); ++i) {
            const double length = lengths[i];
            costs[i] += length + square * length * length;
        }
    return costs;
}

std::vector<std::int64_t> padded_lengths(const BatchItems& items) {
    std::vector<std::int64_t> longest(items.samples.size(), 0);
    for (const std::vector<std::int32_t>& lengths : items.lengths)
        for (std::size_t i = 0; i < longest.size(); ++i)
            longest[i] = std::max<std::int64_t>(longest[i], lengths[i]);
    return longest;
}

}  // namespace hetseq
