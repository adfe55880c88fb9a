#include "hetseq/app/rank_list.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/topology.hpp"

namespace hetseq {

namespace {

std::optional<std::int64_t> to_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0)
        return std::nullopt;
    return value;
}

bool key_fits(const std::string& key, const RankInfo& info) {
    if (const auto rank = to_number(key))
        return *rank == info.rank;
    const auto dash = key.find('-');
    if (dash != std::string::npos) {
        const auto first = to_number(std::string_view(key).substr(0, dash));
        const auto last = to_number(std::string_view(key).substr(dash + 1));
        if (first && last)
            return *first <= info.rank && info.rank <= *last;
    }
    return key == info.host || to_lower(info.device_name).find(to_lower(key)) != std::string::npos;
}

[[noreturn]] void reject_entry(const std::string& option, const std::string& entry) {
    throw BadConfig("--" + option + ": cannot read '" + entry + "'",
                    "expected N, or KEY=N by rank, host or device",
                    "write for example 0=64,1-3=16 or v100=64,p100=16");
}

}  // namespace

std::int64_t rank_value(const std::string& option,
                        const std::string& list,
                        const Topology& topology,
                        int rank) {
    if (const auto value = to_number(list))
        return *value;
    const RankInfo& info = topology.rank(rank);
    for (const std::string& entry : split(list, ',')) {
        const auto equals = entry.find('=');
        if (equals == std::string::npos)
            reject_entry(option, entry);
        const auto value = to_number(std::string_view(entry).substr(equals + 1));
        if (!value || equals == 0)
            reject_entry(option, entry);
        if (key_fits(entry.substr(0, equals), info))
            return *value;
    }
    throw BadConfig("--" + option + " has no entry for rank " + std::to_string(rank),
                    "on host " + info.host + ", device " + info.device_name,
                    "add one, by rank, host or device");
}

std::string rank_list(const std::vector<std::int64_t>& values) {
    if (std::all_of(values.begin(), values.end(), [&](std::int64_t value) {
            return value == values.front();
        }))
        return std::to_string(values.front());
    std::string list;
    for (std::size_t r = 0; r < values.size(); ++r)
        list += (r > 0 ? "," : "") + std::to_string(r) + "=" + std::to_string(values[r]);
    return list;
}

}  // namespace hetseq
