#include "hetseq/balance/divide_items.hpp"

#include <cstddef>
#include <numeric>

#include "hetseq/util/error.hpp"

namespace hetseq {

std::vector<std::int64_t> divide_items(std::span<const std::int64_t> shares, std::int64_t items) {
    const std::int64_t sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
    HETSEQ_ASSERT(sum > 0 && items >= 0);
    std::vector<std::int64_t> counts;
    std::int64_t left = items;
    for (const std::int64_t share : shares) {  // nobody gets less than this
        counts.push_back(static_cast<std::int64_t>(__int128{items} * share / sum));
        left -= counts.back();
    }
    // Whether one more item is a smaller part of a's share than of b's.
    const auto is_better = [&](std::size_t a, std::size_t b) {
        return __int128{counts[a] + 1} * shares[b] < __int128{counts[b] + 1} * shares[a];
    };
    for (; left > 0; --left) {
        std::size_t best = shares.size();
        for (std::size_t r = 0; r < shares.size(); ++r)
            if (shares[r] > 0 && (best == shares.size() || is_better(r, best)))
                best = r;
        ++counts[best];
    }
    return counts;
}

}  // namespace hetseq
