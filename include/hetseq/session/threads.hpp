#pragma once

#include <string>

namespace hetseq {

struct RankInfo;

struct ThreadChoice {
    int threads = 1;
    std::string warning;  // empty, or why this rank has fewer cores than it should
};

/// Threads of a rank: its own cores, or `asked` when that is above 0. Warns when those are more
/// than its cores, or its cores fewer than its part of those that the `host_ranks` ranks of its
/// host may use together.
ThreadChoice choose_threads(const RankInfo& rank, int host_ranks, int asked);

}  // namespace hetseq
