#pragma once

#include <string>

namespace hetseq {

struct RankInfo;

struct ThreadChoice {
    int threads = 1;
    std::string warning;  // empty, or why this rank has fewer cores than it should
};

/// Threads of a rank: its own cores, or `asked` when that is above 0. Warns when those are more
/// than its cores, or its cores fewer than its part of the host: `host_cores` over the `host_ranks`
/// that run there.
ThreadChoice choose_threads(const RankInfo& rank, int host_cores, int host_ranks, int asked);

}  // namespace hetseq
