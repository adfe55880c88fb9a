#include "hetseq/session/pipeline/virtual_workers.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host/topology.hpp"

namespace hetseq {

namespace {

std::optional<int> rank_number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0)
        return std::nullopt;
    return value;
}

// An empty list has one empty name.
std::vector<std::string> names_in(const std::string& list) {
    std::vector<std::string> names = split(list, '+');
    if (names.empty())
        names.emplace_back();
    return names;
}

[[noreturn]] void refuse(const std::string& list, const std::string& why) {
    throw BadConfig("--virtual-workers is '" + list + "'",
                    why,
                    "give none, auto, or the ranks or hosts of a worker, such as 0+1+2 or "
                    "node1+node2");
}

// A rank, a range of ranks, or a host's ranks; empty: none of these.
std::vector<int> ranks_named(const std::string& name, const Topology& topology) {
    std::vector<int> ranks;
    for (const RankInfo& info : topology.ranks)
        if (info.host == name)
            ranks.push_back(info.rank);
    const std::size_t dash = name.find('-');
    const auto first = rank_number(std::string_view{name}.substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : rank_number(std::string_view{name}.substr(dash + 1));
    if (!ranks.empty() || !first || !last)
        return ranks;
    for (const RankInfo& info : topology.ranks)
        if (*first <= info.rank && info.rank <= *last)
            ranks.push_back(info.rank);
    return ranks;
}

}  // namespace

std::vector<int> ranks_of_worker(const std::string& list, const Topology& topology) {
    std::vector<int> ranks(topology.ranks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    if (list == "auto")
        return ranks;
    if (list.find(',') != std::string::npos)
        refuse(list, "a job has one virtual worker: several are not supported");
    ranks.clear();
    for (const std::string& name : names_in(list)) {
        if (name.empty())
            refuse(list, "a rank or host is missing beside a '+'");
        const std::vector<int> named = ranks_named(name, topology);
        if (named.empty())
            refuse(list,
                   "'" + name + "' is none of the job's " + std::to_string(topology.ranks.size()) +
                       " ranks, nor a host of them");
        for (const int rank : named) {
            if (std::count(ranks.begin(), ranks.end(), rank) > 0)
                refuse(list, "it has rank " + std::to_string(rank) + " twice");
            ranks.push_back(rank);
        }
    }
    return ranks;
}

std::vector<std::size_t> parse_stage_units(const std::string& text) {
    std::vector<std::size_t> units;
    if (text == "auto")
        return units;
    for (const std::string& part : names_in(text)) {
        const std::optional<int> number = rank_number(part);
        if (!number || *number == 0)
            throw BadConfig("--stage-units is '" + text + "'",
                            "'" + part + "' is not a number of units",
                            "give auto, or the units of each stage, such as 3+4+2");
        units.push_back(static_cast<std::size_t>(*number));
    }
    return units;
}

}  // namespace hetseq
