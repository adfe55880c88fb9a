#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/plan/all_reduce_time.hpp"
#include "hetseq/plan/cluster.hpp"

namespace hetseq {

/// Ranks with the same device and share.
struct RankGroup {
    std::size_t node = 0;  // of Cluster::nodes
    std::int64_t ranks = 0;
    std::int64_t units = 0;  // each
    double compute_ms = 0;   // each, in the mean
    double backward_ms = 0;  // of it, the backward of its last micro-batch
};

/// The ranks of `cluster`, node class by node class, with the shares in `allocation`.
std::vector<RankGroup> group_ranks(const Cluster& cluster,
                                   std::span<const std::int64_t> allocation);

/// One update, in expectation [ms].
struct UpdateTimes {
    double step_ms = 0;
    double compute_ms = 0;  // the slowest rank's, in the mean
    double spread_ms = 0;   // by which the slowest of each update exceeds that
    double exposed_ms = 0;  // of communication, after the slowest rank's backward
    double update_ms = 0;   // after the reduction: optimizer
    double reduce_ms = 0;   // all buckets' all-reduces, overlapped or not
};

/// Simulates one update. The events are `bucket ready on all ranks` and `bucket reduced`. Buckets
/// of equal size become ready evenly over the backward of the last micro-batch. They start in their
/// order, each when the slowest rank has it and the one before is done. Ranks without work are
/// ready at once. The expectation is over the slowest rank's quantile (slowest_rank.hpp):
/// deterministic.
UpdateTimes simulate_update(const Cluster& cluster, std::span<const RankGroup> groups);

}  // namespace hetseq
