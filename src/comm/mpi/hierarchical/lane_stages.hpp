#pragma once

#include <vector>

#include "comm/mpi/host_map.hpp"
#include "lane_layout.hpp"

namespace hetseq {

enum class HierarchicalOperation { all_reduce, reduce_scatter, all_gather };

/// A part of a lane, on its way to or from `peer`.
struct LaneTransfer {
    int peer = 0;
    ElementRange part;
};

/// Transfers of a lane that are under way at once.
struct LaneStage {
    int tag = 0;  // below `lane_tags`, the same for both ends
    std::vector<LaneTransfer> sends = {};
    std::vector<LaneTransfer> receives = {};
    bool adds = false;   // what is received; else it is stored
    int before_own = 0;  // so many of `receives` are summed before the own values
};

constexpr int lane_tags = 64;

/// How the ranks share the lanes out. Each host's lanes go in turn to its ranks, so that these do
/// an equal part of their host's sums and messages, whatever the other hosts have. A host of one
/// rank beside one of eight takes all eight lanes, not the eight ranks one leader.
struct Lanes {
    const HostMap& hosts;
    int rank;
    int count;  // lanes

    /// The rank of `host` that sums `lane`.
    int rank_of(int host, int lane) const;
};

/// As many lanes as the largest host has ranks, but not above 16: with more, a host of one rank
/// would send messages without end, and 16 ranks sum as fast as memory allows.
int lane_count(const HostMap& hosts) noexcept;

/// What this rank does for a lane of `layout`.
std::vector<LaneStage> lane_stages(HierarchicalOperation operation,
                                   const Lanes& lanes,
                                   int lane,
                                   const LaneLayout& layout,
                                   const HostRanges& ranges);

}  // namespace hetseq
