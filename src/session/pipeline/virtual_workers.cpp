#include "hetseq/session/pipeline/virtual_workers.hpp"

#include <charconv>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

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

// An empty text has one empty part.
std::vector<std::string> parts_of(const std::string& text, char separator) {
    std::vector<std::string> parts = split(text, separator);
    if (parts.empty())
        parts.emplace_back();
    return parts;
}

[[noreturn]] void refuse(const std::string& list, const std::string& why) {
    throw BadConfig("--virtual-workers is '" + list + "'",
                    why,
                    "give none, auto, or the ranks or hosts of each worker, such as 0+1+2, "
                    "node1+node2 or 0+1,2+3");
}

// A rank, a range of ranks that there are, or a host's ranks; empty: none of these.
std::vector<int> ranks_named(const std::string& name, const Topology& topology) {
    std::vector<int> ranks;
    for (const RankInfo& info : topology.ranks)
        if (info.host == name)
            ranks.push_back(info.rank);
    const std::size_t dash = name.find('-');
    const auto first = rank_number(std::string_view{name}.substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : rank_number(std::string_view{name}.substr(dash + 1));
    if (!ranks.empty() || !first || !last || std::cmp_greater_equal(*last, topology.ranks.size()))
        return ranks;
    for (int rank = *first; rank <= *last; ++rank)
        ranks.push_back(rank);
    return ranks;
}

std::vector<int> checked_ranks(const std::string& name,
                               const std::string& list,
                               const Topology& topology) {
    if (name.empty())
        refuse(list, "a rank or host is missing beside a '+' or ','");
    std::vector<int> ranks = ranks_named(name, topology);
    if (ranks.empty())
        refuse(list,
               "'" + name + "' is not within the job's " + std::to_string(topology.ranks.size()) +
                   " ranks, nor a host of them");
    return ranks;
}

}  // namespace

std::vector<std::vector<int>> ranks_of_workers(const std::string& list, const Topology& topology) {
    if (list == "auto") {
        std::vector<int> all(topology.ranks.size());
        std::iota(all.begin(), all.end(), 0);
        return {all};
    }
    std::vector<std::vector<int>> workers;
    std::set<int> known;
    for (const std::string& worker : parts_of(list, ',')) {
        auto& ranks = workers.emplace_back();
        for (const std::string& name : parts_of(worker, '+'))
            for (const int rank : checked_ranks(name, list, topology)) {
                if (!known.insert(rank).second)
                    refuse(list, "it has rank " + std::to_string(rank) + " twice");
                ranks.push_back(rank);
            }
    }
    return workers;
}

std::vector<StageUnits> parse_stage_units(const std::string& text) {
    std::vector<StageUnits> workers;
    if (text == "auto")
        return workers;
    const auto number_in = [&](const std::string& part, int least, const char* what) {
        const std::optional<int> number = rank_number(part);
        if (!number || *number < least)
            throw BadConfig("--stage-units is '" + text + "'",
                            "'" + part + "' is not a number of " + what,
                            "give auto, or the units of each stage, such as 3+4+2, and of each "
                            "worker, such as 3+4+2,5+4");
        return static_cast<std::size_t>(*number);
    };
    for (const std::string& worker : parts_of(text, ',')) {
        StageUnits& stages = workers.emplace_back();
        const std::size_t colon = worker.find(':');
        if (colon != std::string::npos)
            stages.extra_in_flight = number_in(worker.substr(colon + 1), 0, "micro-batches");
        for (const std::string& part : parts_of(worker.substr(0, colon), '+'))
            stages.units.push_back(number_in(part, 1, "units"));
    }
    return workers;
}

std::string stage_units_text(const std::vector<StageUnits>& workers) {
    std::vector<std::string> texts;
    for (const StageUnits& worker : workers) {
        std::vector<std::string> units;
        for (const std::size_t of_stage : worker.units)
            units.push_back(std::to_string(of_stage));
        texts.push_back(join(units, "+") + (worker.extra_in_flight > 0
                                                ? ":" + std::to_string(worker.extra_in_flight)
                                                : ""));
    }
    return join(texts, ",");
}

}  // namespace hetseq
