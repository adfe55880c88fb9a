#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hetseq/plan/cluster.hpp"
#include "hetseq/plan/update_simulator.hpp"

namespace hetseq {

/// One update of the described job.
struct PlannedUpdate {
    std::int64_t ranks = 0;
    std::int64_t nodes = 0;
    std::int64_t batch = 0;  // units
    std::vector<RankGroup> groups;
    UpdateTimes times;
    double bound_ms = 0;    // of `allocate.hpp`: no communication, no spread, fractions
    double efficiency = 0;  // bound_ms / step_ms
    double rate = 0;        // units a second
};

/// Throws BadConfig where the devices cannot take the batch.
PlannedUpdate plan_update(const Cluster& cluster);

/// A number of nodes of one class, with the others as described.
struct NodeCount {
    std::int64_t nodes = 0;
    double step_ms = 0;
    double rate = 0;  // units a second
    double efficiency = 0;
};

/// The plan for one class of nodes.
struct NodeClassPlan {
    std::size_t node = 0;  // of Cluster::nodes
    std::int64_t ranks = 0;
    std::int64_t units = 0;                        // all its ranks together
    std::int64_t least_units = 0, most_units = 0;  // a rank
    double share = 0;                              // of the batch
    double compute_ms = 0;                         // a rank's, mean
    double idle_ms = 0;  // a rank's, mean: the step without own compute and optimizer
    std::optional<NodeCount> one_more;  // none: there would be too many ranks
    std::vector<NodeCount> tried;       // ascending; numbers that cannot take the batch left out
    /// The fewest nodes within a thousandth of the highest rate tried; more are not worth it.
    std::int64_t best_nodes = 0;
    bool still_pays = false;  // the rate was highest at the most nodes tried
};

struct ClusterPlan {
    PlannedUpdate update;
    std::vector<NodeClassPlan> classes;
};

/// Plans the update, and for each class what more or fewer nodes would change. Throws BadConfig as
/// above.
ClusterPlan plan_cluster(const Cluster& cluster);

}  // namespace hetseq
