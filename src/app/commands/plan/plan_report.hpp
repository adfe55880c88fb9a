#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hetseq/balance/layout/plan_workers.hpp"
#include "hetseq/plan/cluster_fit.hpp"
#include "hetseq/plan/cluster_plan.hpp"

namespace hetseq {

/// All results of `hetseq plan`.
struct PlanReport {
    Cluster cluster;  // as planned for: filled in and fitted
    ClusterPlan plan;
    std::optional<ClusterFit> fit;         // where rows were given
    std::vector<std::string> taken;        // from runs, a sentence each
    std::vector<LayoutPlan> layouts = {};  // where layers were given
};

/// For people: tables, and advice in words.
std::string plan_text(const PlanReport& report);

/// One JSON object (docs/planning.md), ends with a newline.
std::string plan_json(const PlanReport& report);

}  // namespace hetseq
