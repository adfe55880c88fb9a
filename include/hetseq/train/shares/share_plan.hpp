#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/balance/step_cost.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/data/order/micro_batch_cap.hpp"

namespace hetseq {

/// How the work of samples of unequal length is counted: in units of their cost. (Rows of one shape
/// are counted in samples.)
struct RaggedWork {
    ItemCost cost;
    std::int64_t full_batch = 1;                 // a full batch has about as many units
    double units_per_token = 1;                  // of a padded token in a micro-batch, about
    std::string unit = "samples";                // what the work is reported in, or "tokens"
    double reported_units = 1;                   // of them in a unit of cost, about
    std::vector<std::int64_t> max_samples = {};  // of a micro-batch, by rank; empty: any
};

/// How global batches are cut over ranks.
class SharePlan {
public:
    /// Collective. `capacities`: units a micro-batch, by rank; `policy`: "declared" (as fast as
    /// the capacity says) or "equal".
    SharePlan(const HostComm& world,
              const std::string& policy,
              std::vector<std::int64_t> capacities);
    /// Collective. Cuts by the ranks' costs, and takes their micro-batches.
    SharePlan(const HostComm& world, const std::string& policy, std::vector<StepCost> costs);

    /// Collective. From now on samples have unequal lengths. What cuts depend on, the cost and the
    /// full batch, is as rank 0 says.
    void set_ragged(RaggedWork work);
    const std::optional<RaggedWork>& ragged() const noexcept { return ragged_; }
    /// Units of a full batch of `plan`.
    std::int64_t full_batch(const BatchPlan& plan) const;

    /// From now on a batch of the allocation's sum is cut so, one of another size in proportion.
    void change(std::vector<std::int64_t> allocation);

    /// Collective when it meets a batch of a new size: the allocation is computed on one rank and
    /// broadcast, since CPUs of different makes round differently. Units by rank, summing to
    /// `units`.
    const std::vector<std::int64_t>& allocation(std::int64_t units);
    /// A batch, cut.
    struct Cut {
        std::vector<Slice> slices;        // by rank
        std::vector<std::int64_t> units;  // by rank
    };
    /// Collective as `allocation`. Of rows of one shape each rank gets its allocation, of samples
    /// of unequal length that part of the batch's cost which it has in a full batch's allocation.
    Cut cut(const GlobalBatch& batch);

    /// Ranks that are stages of a pipeline compute the share of one of them, and have none of their
    /// own. By rank.
    void set_leaders(std::vector<int> leaders) { leaders_ = std::move(leaders); }
    /// Whose share a rank computes: its own where it is no such stage.
    int leader_of(int rank) const {
        return leaders_.empty() ? rank : leaders_.at(static_cast<std::size_t>(rank));
    }
    /// The most that a micro-batch of this rank may hold.
    MicroBatchCap cap() const;
    /// The units of such a micro-batch.
    std::int64_t units_of(const MicroBatchCap& cap) const;
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
        allocations_;                    // by units: of a full batch and of an epoch's last
    std::vector<std::int64_t> changed_;  // what batches are cut in proportion to; empty: by cost
    std::optional<RaggedWork> ragged_;   // none: rows of one shape
    std::vector<int> leaders_;           // by rank; empty: each has its own share
};

}  // namespace hetseq
