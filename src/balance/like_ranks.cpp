#include "hetseq/balance/like_ranks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

std::vector<StepCost> pool_like_ranks(std::span<const StepCost> costs, std::span<const int> kinds) {
    HETSEQ_ASSERT(costs.size() == kinds.size());
    // Kind, micro-batch, most units, recomputed layers.
    using Kind = std::tuple<int, std::int64_t, std::int64_t, std::int64_t>;
    std::map<Kind, std::vector<std::size_t>> members;
    for (std::size_t r = 0; r < costs.size(); ++r)
        members[{kinds[r], costs[r].micro_batch, costs[r].max_units, costs[r].recomputed_layers}]
            .push_back(r);
    std::vector<StepCost> pooled{costs.begin(), costs.end()};
    for (const auto& [kind, ranks] : members) {
        std::vector<std::pair<double, std::size_t>> times;  // of a full micro-batch, rank
        for (const std::size_t r : ranks)
            times.emplace_back(costs[r].time_ms(costs[r].micro_batch), r);
        const auto middle = times.begin() + (std::ssize(times) - 1) / 2;
        std::nth_element(times.begin(), middle, times.end());
        for (const std::size_t r : ranks) {
            pooled[r] = costs[middle->second];
            pooled[r].activations_mb = costs[r].activations_mb;
        }
    }
    return pooled;
}

}  // namespace hetseq
