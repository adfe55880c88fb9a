#include "hetseq/train/shares/share_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

namespace hetseq {

namespace {

// The method of largest remainders; ties go to the lower rank. It uses integers, so that all ranks
// find the same.
std::vector<std::int64_t> in_proportion(const std::vector<std::int64_t>& shares,
                                        std::int64_t units) {
    const std::int64_t sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
    std::vector<std::int64_t> result;
    std::vector<std::size_t> ranks;
    for (std::size_t r = 0; r < shares.size(); ++r) {
        result.push_back(units * shares[r] / sum);
        ranks.push_back(r);
    }
    std::stable_sort(ranks.begin(), ranks.end(), [&](std::size_t a, std::size_t b) {
        return units * shares[a] % sum > units * shares[b] % sum;
    });
    const std::int64_t given = std::accumulate(result.begin(), result.end(), std::int64_t{0});
    for (std::int64_t i = 0; i < units - given; ++i)
        ++result[ranks[static_cast<std::size_t>(i)]];
    return result;
}

}  // namespace

SharePlan::SharePlan(const HostComm& world,
                     const std::string& policy,
                     std::vector<std::int64_t> capacities)
    : world_{world.duplicate()}, policy_{policy}, capacities_{std::move(capacities)} {
    HETSEQ_ASSERT(total_capacity() > 0);
    if (policy == "declared")
        costs_ = declared_costs(capacities_);
    else if (policy == "equal")
        costs_ = equal_costs(capacities_);
    else
        throw BadConfig("unknown balance '" + policy + "'", "--balance", "use declared or equal");
}

SharePlan::SharePlan(const HostComm& world, const std::string& policy, std::vector<StepCost> costs)
    : world_{world.duplicate()}, policy_{policy}, costs_{std::move(costs)} {
    for (const StepCost& cost : costs_)
        capacities_.push_back(cost.micro_batch);
}

void SharePlan::change(std::vector<std::int64_t> allocation) {
    HETSEQ_ASSERT(allocation.size() == capacities_.size());
    changed_ = std::move(allocation);
    allocations_.clear();
}

const std::vector<std::int64_t>& SharePlan::allocation(std::int64_t batch_size) {
    const auto known = allocations_.find(batch_size);
    if (known != allocations_.end())
        return known->second;
    if (!changed_.empty())
        return allocations_.emplace(batch_size, in_proportion(changed_, batch_size)).first->second;
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
