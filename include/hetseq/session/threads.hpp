#pragma once

#include <string>

namespace hetseq {

struct RankInfo;

struct ThreadChoice {
    int threads = 1;
    std::string warning;  // empty, or why this rank has fewer cores than it should
};

/// Threads of a rank: `asked`, or as many as its own cores if `asked` is 0. Warns if these are more
/// than its cores, or if its cores are fewer than its part of those that the `host_ranks` ranks of
/// its host may use together. Throws BadConfig for more than 1,024.
ThreadChoice choose_threads(const RankInfo& rank, int host_ranks, int asked);

}  // namespace hetseq
