#include "hetseq/train/share_plan.hpp"

#include <numeric>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

namespace hetseq {

SharePlan::SharePlan(const HostComm& world,
                     const std::string& policy,
                     std::vector<std::int64_t> capacities)
    : world_{world.duplicate()}, policy_{policy}, capacities_{std::move(capacities)} {
    if (total_capacity() == 0)
        throw BadConfig("no rank takes any work",
                        "--max-sentences is 0 on all of them",
                        "give at least one rank a capacity");
    if (policy == "declared")
        costs_ = declared_costs(capacities_);
    else if (policy == "equal")
        costs_ = equal_costs(capacities_);
    else
        throw BadConfig("unknown balance '" + policy + "'", "--balance", "use declared or equal");
}

const std::vector<std::int64_t>& SharePlan::allocation(std::int64_t batch_size) {
    const auto known = allocations_.find(batch_size);
    if (known != allocations_.end())
        return known->second;
    std::vector<std::int64_t> shares(capacities_.size());
    if (world_.rank() == 0)
        shares = allocate(costs_, batch_size);
    world_.broadcast(std::as_writable_bytes(std::span(shares)), 0);
    return allocations_.emplace(batch_size, std::move(shares)).first->second;
}

std::vector<Slice> SharePlan::slices(const GlobalBatch& batch) {
    return cut_by_rank(batch, allocation(batch.size()));
}

std::int64_t SharePlan::micro_batch() const {
    return capacities_[static_cast<std::size_t>(world_.rank())];
}

std::int64_t SharePlan::total_capacity() const {
    return std::accumulate(capacities_.begin(), capacities_.end(), std::int64_t{0});
}

}  // namespace hetseq
