#include "hetseq/train/shares/share_plan.hpp"

#include <algorithm>
#include <cmath>
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
    std::vector<std::int64_t> remainders;
    std::vector<std::size_t> ranks;
    for (std::size_t r = 0; r < shares.size(); ++r) {
        const __int128 product = __int128{units} * shares[r];
        result.push_back(static_cast<std::int64_t>(product / sum));
        remainders.push_back(static_cast<std::int64_t>(product % sum));
        ranks.push_back(r);
    }
    std::stable_sort(ranks.begin(), ranks.end(), [&](std::size_t a, std::size_t b) {
        return remainders[a] > remainders[b];
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

void SharePlan::set_ragged(RaggedWork work) {
    struct {
        double square;
        std::int64_t full_batch;
    } first{work.cost.square, work.full_batch};
    world_.broadcast(std::as_writable_bytes(std::span(&first, 1)), 0);
    work.cost.square = first.square;
    work.full_batch = first.full_batch;
    ragged_ = std::move(work);
}

void SharePlan::change(std::vector<std::int64_t> allocation) {
    HETSEQ_ASSERT(allocation.size() == capacities_.size());
    changed_ = std::move(allocation);
    allocations_.clear();
}

const std::vector<std::int64_t>& SharePlan::allocation(std::int64_t units) {
    const auto known = allocations_.find(units);
    if (known != allocations_.end())
        return known->second;
    if (!changed_.empty())
        return allocations_.emplace(units, in_proportion(changed_, units)).first->second;
    std::vector<std::int64_t> shares(capacities_.size());
    if (world_.rank() == 0)
        shares = allocate(costs_, units);
    world_.broadcast(std::as_writable_bytes(std::span(shares)), 0);
    return allocations_.emplace(units, std::move(shares)).first->second;
}

std::int64_t SharePlan::full_batch(const BatchPlan& plan) const {
    return ragged_ ? ragged_->full_batch : plan.full_batch();
}

SharePlan::Cut SharePlan::cut(const GlobalBatch& batch) {
    if (!batch.items) {
        Cut cut{cut_by_rank(batch, allocation(batch.size())), {}};
        for (const Slice& slice : cut.slices)
            cut.units.push_back(slice.size());
        return cut;
    }
    HETSEQ_ASSERT(ragged_);
    const std::vector<std::int64_t> costs = ragged_->cost.of(*batch.items);
    Cut cut{cut_by_rank(batch, allocation(ragged_->full_batch), costs), {}};
    constexpr std::int64_t part = ItemCost::parts_of_a_unit;
    for (const Slice& slice : cut.slices) {
        const std::int64_t cost = std::accumulate(
            costs.begin() + slice.begin, costs.begin() + slice.end, std::int64_t{0});
        cut.units.push_back(cost / part + (cost % part >= part / 2 ? 1 : 0));
    }
    return cut;
}

MicroBatchCap SharePlan::cap() const {
    const auto rank = static_cast<std::size_t>(leader_of(world_.rank()));
    if (!ragged_)
        return {.samples = capacities_[rank]};
    const double tokens = static_cast<double>(capacities_[rank]) / ragged_->units_per_token;
    return {ragged_->max_samples.empty() ? MicroBatchCap::none : ragged_->max_samples[rank],
            std::max<std::int64_t>(std::llround(tokens), 1)};
}

std::int64_t SharePlan::units_of(const MicroBatchCap& cap) const {
    if (!ragged_)
        return cap.samples;
    return std::max<std::int64_t>(
        std::llround(static_cast<double>(cap.tokens) * ragged_->units_per_token), 1);
}

std::int64_t SharePlan::total_capacity() const {
    return std::accumulate(capacities_.begin(), capacities_.end(), std::int64_t{0});
}

}  // namespace hetseq
