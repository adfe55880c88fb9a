#include "hetseq/train/watch/killed_ranks.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/process_stat.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host/memory_kills.hpp"
#include "hetseq/comm/host/rank_ranges.hpp"
#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

namespace {

bool process_lives(int process) {
    const std::optional<ProcessStat> stat = process_stat(process);
    return stat && !stat->has_ended();
}

// "rank 1 on h1 and ranks 2, 3 on h2".
std::string name_places(const std::vector<KilledRanks::LocalRank>& locals) {
    std::map<std::string, std::vector<int>> by_host;
    for (const KilledRanks::LocalRank& local : locals)
        by_host[local.host].push_back(local.rank);
    std::vector<std::string> places;
    for (const auto& [host, ranks] : by_host)
        places.push_back(name_ranks(ranks) + " on " + host);
    return join(places, " and ");
}

}  // namespace

KilledRanks::KilledRanks(std::vector<LocalRank> locals, int own, Kernel kernel)
    : locals_{std::move(locals)},
      own_{own},
      kernel_{std::move(kernel)},
      kills_{kernel_.memory_kills()} {}

std::string KilledRanks::look() {
    std::vector<LocalRank> gone;
    for (const LocalRank& local : locals_)
        if (local.rank != own_ && !kernel_.is_alive(local.process))
            gone.push_back(local);
    if (gone.empty())
        return "";
    const std::int64_t kills = kernel_.memory_kills();
    if (kills <= std::exchange(kills_, kills))
        return "";
    std::erase_if(locals_, [&](const LocalRank& local) {
        return std::any_of(gone.begin(), gone.end(), [&](const LocalRank& other) {
            return other.rank == local.rank;
        });
    });
    if (locals_.front().rank != own_)
        return "";
    return Explanation{
        name_places(gone) + (gone.size() == 1 ? " is" : " are") +
            " gone, most likely killed for want of memory",
        "the kernel has meanwhile killed a process of this host for that",
        "give the job more memory on this host, or give its ranks less to hold: smaller "
        "micro-batches (--max-sentences, --max-tokens), fewer ranks on this host"}
        .text();
}

KilledRanks make_killed_ranks(const HostComm& world) {
    const std::vector<std::string> machines = world.all_gather(machine_id());
    const std::vector<std::int64_t> processes = world.all_gather(std::int64_t{::getpid()});
    const std::vector<std::string> hosts = world.all_gather(host_name());
    std::vector<KilledRanks::LocalRank> locals;
    const std::string& own = machines[static_cast<std::size_t>(world.rank())];
    for (std::size_t rank = 0; rank < machines.size(); ++rank) {
        const auto process = static_cast<int>(processes[rank]);
        // Containers of one machine may not see each other's processes.
        if (machines[rank] == own && process_lives(process))
            locals.push_back({static_cast<int>(rank), process, hosts[rank]});
    }
    return {std::move(locals), world.rank(), {process_lives, [] { return memory_kills(); }}};
}

}  // namespace hetseq
