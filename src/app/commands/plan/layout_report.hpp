#pragma once

#include <string>
#include <vector>

#include "hetseq/balance/layout/plan_workers.hpp"
#include "hetseq/plan/cluster.hpp"

#include <nlohmann/json_fwd.hpp>

namespace hetseq {

/// For people: what layouts of the cluster's layers take, and the first one's workers. Empty
/// without layouts.
std::string layouts_text(const Cluster& cluster, const std::vector<LayoutPlan>& layouts);

/// What `hetseq plan --json` has as "layouts", and as "best_layout" of these; null where none fits.
nlohmann::ordered_json layouts_json(const Cluster& cluster, const std::vector<LayoutPlan>& layouts);
nlohmann::ordered_json best_layout_json(const Cluster& cluster,
                                        const std::vector<LayoutPlan>& layouts);

}  // namespace hetseq
