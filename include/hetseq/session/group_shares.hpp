#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/train/shares/share_plan.hpp"

namespace hetseq {

/// Throws BadConfig if a rank's micro-batches hold less than a group of the plan's batches, where
/// these are made of groups. `of`: what the batches are of, "training" or "validation".
void check_groups(const SharePlan& shares, const BatchPlan& plan, const std::string& of);

/// Collective. By rank: what it computes of a full batch, in whole groups where the batches have
/// them, in samples or units of work.
std::vector<std::int64_t> shares_of_full_batch(SharePlan& shares, const BatchPlan& plan);

/// Collective. A line about how the groups of a full batch fall on the ranks, what whole groups
/// cost over single samples by the costs that the shares assume, and the size that would cost
/// little; empty where batches have no groups, or samples unequal lengths.
std::string group_report(SharePlan& shares, const BatchPlan& plan);

}  // namespace hetseq
