#include "hetseq/session/ranks/slow_devices.hpp"

#include <algorithm>
#include <chrono>
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

double seconds_since_1970() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

// By rank, as a part of its kind's; 1: it is not known to be slow.
std::vector<double> known_speeds(const Topology& topology, const std::filesystem::path& history) {
    const std::vector<SlowDevice> slow =
        slow_devices(read_run_history(history), seconds_since_1970());
    std::vector<double> speeds;
    for (const RankInfo& rank : topology.ranks) {
        speeds.push_back(1);
        for (const SlowDevice& device : slow)
            if (device.device == rank.mark)
                speeds.back() = device.speed;
    }
    return speeds;
}

}  // namespace

SpeedWatchOptions speed_watch(const RunSettings& settings, const Replica& replica) {
    SpeedWatchOptions watch;
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
    std::vector<double> speeds(settings.topology.ranks.size(), 1);
    if (world.rank() == 0 && least > 0 && !history.empty())
        speeds = known_speeds(settings.topology, history);
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
    if (kept.empty()) {
        log::warn("no rank is as fast as --drop-below " + format_number(least) +
                  " of its kind: all work");
        for (const RankInfo& rank : settings.topology.ranks)
            kept.push_back(rank.rank);
    } else if (!dropped.empty()) {
        log::warn("left out: " + join(dropped, ", ") +
                  ", which in an earlier start computed at so much of the speed of like devices, "
                  "less than --drop-below " +
                  format_number(least) +
                  "; they are tried again a day after that, or with --drop-below 0; the others are "
                  "numbered anew, from 0 on");
    }
    return kept;
}

}  // namespace hetseq
