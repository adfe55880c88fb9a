#include "hetseq/session/ranks/slow_devices.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/record/run_history.hpp"
#include "hetseq/session/replica.hpp"

namespace hetseq {

namespace {

// By rank, as a part of its kind's; 1: it is not known to be slow.
std::vector<double> known_speeds(const Topology& topology,
                                 const std::filesystem::path& history,
                                 DamagedHistory damaged) {
    const std::vector<SlowDevice> slow =
        slow_devices(read_run_history(history, damaged), RunHistory::Clock{}.since_1970());
    std::vector<double> speeds;
    for (const RankInfo& rank : topology.ranks) {
        speeds.push_back(1);
        for (const SlowDevice& device : slow)
            if (device.device == rank.mark)
                speeds.back() = device.speed;
    }
    return speeds;
}

std::vector<int> ranks_of(const Topology& topology) {
    std::vector<int> ranks;
    for (const RankInfo& rank : topology.ranks)
        ranks.push_back(rank.rank);
    return ranks;
}

// Why no rank may be left out, though only `kept` are fast enough; empty: they may.
std::string why_all_work(const RunSettings& settings, const std::vector<int>& kept) {
    const Options& options = settings.options();
    if (kept.empty())
        return "no rank would be left";
    if (options.virtual_workers != "none" && options.virtual_workers != "auto")
        return "--virtual-workers names the ranks";
    if (options.balance.policy == "file")
        return "--balance gives the shares of all ranks";
    const bool has_work = std::any_of(kept.begin(), kept.end(), [&](int rank) {
        return settings.capacities.empty() ||
               settings.capacities[static_cast<std::size_t>(rank)] > 0;
    });
    return has_work ? "" : "the others have a capacity of 0";
}

}  // namespace

SpeedWatchOptions speed_watch(const RunSettings& settings, const Replica& replica) {
    SpeedWatchOptions watch;
    if (replica.stage() != nullptr && settings.options().drop_below > 0)
        log::warn("--drop-below " + format_number(settings.options().drop_below) +
                  " looks at no rank of this run: the stages of a pipeline wait for each other, so "
                  "none is judged slow");
    if (replica.stage() != nullptr || settings.topology.ranks.size() < 2)
        return watch;
    for (const RankInfo& rank : settings.topology.ranks)
        watch.ranks.push_back({.place = "rank " + std::to_string(rank.rank) + " on " + rank.host,
                               .device = rank.mark,
                               .name = rank.device_name,
                               .is_gpu = rank.has_gpu()});
    watch.limits.kinds = like_ranks(settings);
    watch.limits.below = std::max(watch.limits.below, settings.options().drop_below);
    watch.limits.follows = settings.options().balance.policy == "auto";
    return watch;
}

std::vector<int> ranks_not_dropped(const HostComm& world,
                                   const RunSettings& settings,
                                   const std::filesystem::path& history) {
    const double least = settings.options().drop_below;
    if (least <= 0 || history.empty())
        return ranks_of(settings.topology);
    std::vector<double> speeds(settings.topology.ranks.size(), 1);
    // Training opens the history anew, and tells of a damaged one then.
    if (world.rank() == 0)
        speeds = known_speeds(
            settings.topology,
            history,
            settings.options().dry_run ? DamagedHistory::told : DamagedHistory::ignored);
    world.broadcast(std::as_writable_bytes(std::span(speeds)), 0);
    std::vector<int> kept;
    std::vector<std::string> dropped;
    for (const RankInfo& rank : settings.topology.ranks) {
        const double speed = speeds[static_cast<std::size_t>(rank.rank)];
        if (speed >= least)
            kept.push_back(rank.rank);
        else
            dropped.push_back("rank " + std::to_string(rank.rank) + " on " + rank.host + " (" +
                              percent_text(speed, 2) + ")");
    }
    if (dropped.empty())
        return kept;
    const std::string below = "--drop-below " + format_number(least);
    if (const std::string why = why_all_work(settings, kept); !why.empty()) {
        log::warn(below + " leaves nobody out: " + why);
        return ranks_of(settings.topology);
    }
    log::warn("left out: " + join(dropped, ", ") +
              ": their speed beside that of like devices in an earlier start is less than " +
              below +
              "; they are tried again a day after that, or with --drop-below 0; the others are "
              "numbered anew, from 0 on");
    return kept;
}

}  // namespace hetseq
