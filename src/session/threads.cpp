#include "hetseq/session/threads.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/topology.hpp"

namespace hetseq {

namespace {

constexpr int most_threads =
    1024;  // starting a hundred thousand takes minutes, and no rank has the cores

}  // namespace

ThreadChoice choose_threads(const RankInfo& rank, int host_ranks, int asked) {
    if (asked > most_threads)
        throw BadConfig("--threads asks for " + std::to_string(asked) + " threads of a rank",
                        "a rank has at most " + std::to_string(most_threads),
                        "give the cores that a rank may use, or 0");
    const int part = std::max(1, rank.host_cores / host_ranks);
    ThreadChoice choice{asked > 0 ? asked : rank.own_cores, {}};
    if (rank.own_cores < asked)
        choice.warning =
            std::to_string(asked) + " threads on " + std::to_string(rank.own_cores) + " core(s)";
    else if (asked == 0 && rank.own_cores < part)
        choice.warning = "bound to " + std::to_string(rank.own_cores) + " of the " +
                         std::to_string(part) + " cores it could have";
    if (!choice.warning.empty())
        choice.warning +=
            ": start it with mpirun --bind-to none, or ask the scheduler for more cores per task";
    return choice;
}

}  // namespace hetseq
