#include "rank_classes.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "hetseq/comm/host/topology.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

constexpr double like_speed = 1.15;
constexpr std::size_t most_groups = 4;  // each makes the search for a cut longer
constexpr double shortest_ms = 1e-3;

// All units, forward and backward, by rank [ms].
std::vector<double> chain_ms(const std::vector<std::vector<UnitCost>>& costs) {
    std::vector<double> ms;
    for (const std::vector<UnitCost>& units : costs) {
        double sum_ms = 0;
        for (const UnitCost& unit : units)
            sum_ms += unit.forward_ms + unit.backward_ms;
        ms.push_back(std::max(sum_ms, shortest_ms));
    }
    return ms;
}

// `sorted`: the fastest first.
std::vector<std::vector<int>> groups_within(double factor,
                                            const std::vector<int>& sorted,
                                            const std::vector<double>& ms) {
    std::vector<std::vector<int>> groups;
    double fastest_ms = 0;
    for (const int rank : sorted) {
        const double own_ms = ms[static_cast<std::size_t>(rank)];
        if (groups.empty() || own_ms > factor * fastest_ms) {
            groups.emplace_back();
            fastest_ms = own_ms;
        }
        groups.back().push_back(rank);
    }
    return groups;
}

std::map<std::string, std::vector<int>> ranks_by_host(const RunSettings& settings,
                                                      const std::vector<int>& worker) {
    std::map<std::string, std::vector<int>> on_host;
    for (const int rank : worker)
        on_host[settings.topology.rank(rank).host].push_back(rank);
    return on_host;
}

// With like devices, memory and links.
std::vector<std::vector<int>> like_hardware(const RunSettings& settings,
                                            const std::vector<int>& worker) {
    const std::map<std::string, std::vector<int>> on_host = ranks_by_host(settings, worker);
    const std::vector<int> like = like_ranks(settings);
    std::map<std::string, std::size_t> known;
    std::vector<std::vector<int>> classes;
    for (const int rank : worker) {
        const RankInfo& info = settings.topology.rank(rank);
        const std::string key = std::to_string(like[static_cast<std::size_t>(rank)]) + " " +
                                std::to_string(info.memory_mb) +
                                (on_host.at(info.host).size() > 1 ? " " + info.host : "");
        const std::size_t place = known.emplace(key, classes.size()).first->second;
        if (place == classes.size())
            classes.emplace_back();
        classes[place].push_back(rank);
    }
    return classes;
}

}  // namespace

std::vector<std::vector<int>> groups_of_like_speed(const std::vector<int>& ranks,
                                                   const std::vector<double>& ms) {
    std::vector<int> sorted = ranks;
    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
        return ms[static_cast<std::size_t>(a)] < ms[static_cast<std::size_t>(b)];
    });
    double factor = like_speed;
    std::vector<std::vector<int>> groups = groups_within(factor, sorted, ms);
    while (groups.size() > most_groups)
        groups = groups_within(factor *= like_speed, sorted, ms);
    for (std::vector<int>& group : groups)
        std::sort(group.begin(), group.end());
    return groups;
}

// Quotas, and other work on a host, make ranks unlike whose devices are alike.
RankClasses rank_classes(const RunSettings& settings,
                         const std::vector<int>& worker,
                         const std::vector<std::vector<UnitCost>>& costs) {
    const std::vector<double> ms = chain_ms(costs);
    const std::map<std::string, std::vector<int>> on_host = ranks_by_host(settings, worker);
    RankClasses classes;
    for (const std::vector<int>& ranks : like_hardware(settings, worker))
        for (std::vector<int>& group : groups_of_like_speed(ranks, ms)) {
            const auto host = on_host.find(settings.topology.rank(group.front()).host);
            classes.hosts.emplace_back();
            if (host->second.size() > 1)
                classes.hosts.back() =
                    static_cast<std::size_t>(std::distance(on_host.begin(), host));
            classes.ranks.push_back(std::move(group));
        }
    return classes;
}

}  // namespace hetseq
