#pragma once

#include <cstdint>

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
///   as many within one.
double all_reduce_ms(AllReduceAlgorithm algorithm, const Route& route, double bytes);

}  // namespace hetseq
