#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/balance/step_cost.hpp"
#include "hetseq/data/order/batch_plan.hpp"

namespace hetseq {

/// How global batches are cut over ranks.
class SharePlan {
public:
    /// Collective. `capacities`: samples a micro-batch, by rank; `policy`: "declared" (as fast as
    /// the capacity says) or "equal".
    SharePlan(const HostComm& world,
              const std::string& policy,
              std::vector<std::int64_t> capacities);
    /// Collective. Cuts by the ranks' costs, and takes their micro-batches.
    SharePlan(const HostComm& world, const std::string& policy, std::vector<StepCost> costs);

    /// From now on, a batch of this size is cut like `allocation`, and a batch of another size in
    /// proportion.
    void change(std::vector<std::int64_t> allocation);

    /// Samples by rank, summing to `batch_size`. Collective for a batch of a new size: one rank
    /// computes the allocation and broadcasts it, since CPUs of different makes round differently.
    const std::vector<std::int64_t>& allocation(std::int64_t batch_size);
    /// The allocation as positions in the epoch's order.
    std::vector<Slice> slices(const GlobalBatch& batch);

    /// This rank's micro-batch [samples].
    std::int64_t micro_batch() const;
    const std::vector<std::int64_t>& micro_batches() const noexcept { return capacities_; }
    std::int64_t total_capacity() const;
    const std::string& policy() const noexcept { return policy_; }
    /// The costs that the plan assumes, by rank.
    const std::vector<StepCost>& costs() const noexcept { return costs_; }

private:
    HostComm world_;
    std::string policy_;
    std::vector<std::int64_t> capacities_;
    std::vector<StepCost> costs_;
    std::map<std::int64_t, std::vector<std::int64_t>>
        allocations_;                    // by batch size: a full one and an epoch's last
    std::vector<std::int64_t> changed_;  // what batches are cut in proportion to; empty: by cost
};

}  // namespace hetseq
