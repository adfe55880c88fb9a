#include "hetseq/data/order/batch_items.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hetseq {

std::int64_t BatchItems::total_units() const {
    return std::accumulate(units.begin(), units.end(), std::int64_t{0});
}

std::vector<std::int64_t> ItemCost::of(const BatchItems& items) const {
    constexpr int square_bits = 32;  // of a fraction
    // Products with powers of two are exact.
    const auto factor = static_cast<__int128>(std::llround(std::ldexp(square, square_bits)));
    // So that the sum over all items does not overflow.
    const __int128 most = std::numeric_limits<std::int64_t>::max() /
                          std::max<std::int64_t>(std::ssize(items.samples), 1);
    std::vector<std::int64_t> costs(items.samples.size(), 0);
    for (std::size_t i = 0; i < costs.size(); ++i) {
        __int128 cost = 0;
        for (const std::vector<std::int32_t>& lengths : items.lengths) {
            const __int128 length = lengths[i];
            cost += length * parts_of_a_unit +
                    factor * length * length / ((__int128{1} << square_bits) / parts_of_a_unit);
        }
        costs[i] = static_cast<std::int64_t>(std::min(cost, most));
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
