#include "capacity_units.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hetseq {

std::vector<std::int64_t> in_units(const std::vector<std::int64_t>& capacities,
                                   const RaggedWork& work) {
    std::vector<std::int64_t> units;
    for (const std::int64_t tokens : capacities)
        units.push_back(
            tokens == 0 ? 0
                        : std::max<std::int64_t>(
                              std::llround(static_cast<double>(tokens) * work.units_per_token), 1));
    return units;
}

std::vector<StepCost> recorded_costs(std::vector<std::int64_t> capacities,
                                     const RecordedAllocations& recorded) {
    for (std::size_t r = 0; r < recorded.micro_batches.size(); ++r)
        capacities[r] = std::min(capacities[r], recorded.micro_batches[r]);
    return declared_costs(capacities);
}

}  // namespace hetseq
