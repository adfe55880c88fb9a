#pragma once

#include <cstdint>
#include <string>

#include "hetseq/plan/cluster.hpp"

namespace hetseq {

/// The path of an all-reduce. Ranks of a node are neighbours, and a node's link carries one message
/// each way at a time.
struct Route {
    std::int64_t ranks = 0;
    std::int64_t nodes = 0;
    std::int64_t gpus = 0;  // of the largest node
    Link intra;             // the slowest of those in use
    Link inter;
};

/// Over all nodes of `cluster`, those of count 0 left out.
Route route_over(const Cluster& cluster);

/// Time of one all-reduce of `bytes` [ms]; 0 for a single rank. With n ranks and links of latency l
/// and bandwidth w,
/// ring: 2 (n - 1) (l + bytes / (n w)) over the slowest link (Patarasuk and Yuan, J. Parallel
///   Distrib. Comput. 69, 2009);
/// tree: 2 bytes / w + 2 sum of the tree's levels' l, a pipelined two-tree reduction and broadcast
///   (Sanders, Speck and Traeff, Parallel Computing 35, 2009), ceil(log2) levels over the nodes and
///   as many within one;
/// mpi: by `all_reduce_scheme`. The ring as above. With g ranks on each of N nodes,
///   doubling: ceil(log2 g) (l + bytes / w) within nodes, ceil(log2 N) (l + g bytes / w) between;
///   direct: 2 (l + bytes / w) over the slower of (n - 1) / n bytes within and g (n - g) / n
///     between nodes;
///   hierarchical: 2 (l + (g - 1) / g bytes / w) within nodes, and between them
///     2 (ceil(log2 N) l + parts / N bytes / w), with `halving_parts`.
double all_reduce_ms(AllReduceAlgorithm algorithm, const Route& route, double bytes);

/// How one all-reduce is done: "ring", "tree", "doubling", "direct" or "hierarchical", and its
/// steps, each of which waits for the one before.
struct AllReduceSteps {
    std::string scheme;
    std::int64_t steps = 0;
};
AllReduceSteps all_reduce_steps(AllReduceAlgorithm algorithm, const Route& route, double bytes);

}  // namespace hetseq
