#include <algorithm>
#include <map>

#include "hetseq/comm/host/rank_ranges.hpp"
#include "hetseq/comm/host/topology.hpp"

#include "host_ranges.hpp"

namespace hetseq {

namespace {

// Ranks with like devices on like hosts: one line of the table.
struct Row {
    std::vector<std::string> hosts;
    std::vector<int> ranks;
    const RankInfo* model = nullptr;
};

using Cells = std::vector<std::string>;

std::string setup(const RankInfo& info) {
    return info.device_name + '\n' + std::to_string(info.memory_mb >> 10) + '\n' +
           std::to_string(info.cores) + '\n' + std::to_string(info.own_cores);
}

// All that distinguishes one host from another: its ranks' setups in order.
std::map<std::string, std::string> setups_by_host(const Topology& topology) {
    std::map<std::string, std::string> setups;
    for (const RankInfo& info : topology.ranks)
        setups[info.host] += setup(info) + '\n';
    return setups;
}

std::vector<Row> make_rows(const Topology& topology) {
    const auto setups = setups_by_host(topology);
    std::vector<Row> rows;
    std::map<std::string, std::size_t> row_of;
    for (const RankInfo& info : topology.ranks) {
        const std::string key = setups.at(info.host) + '\v' + setup(info);
        const auto [found, is_new] = row_of.emplace(key, rows.size());
        if (is_new)
            rows.push_back({{}, {}, &info});
        Row& row = rows[found->second];
        row.ranks.push_back(info.rank);
        if (std::find(row.hosts.begin(), row.hosts.end(), info.host) == row.hosts.end())
            row.hosts.push_back(info.host);
    }
    return rows;
}

std::string memory_text(std::int64_t memory_mb) {
    return memory_mb < 10240 ? std::to_string(memory_mb) + " MiB"
                             : std::to_string(memory_mb >> 10) + " GiB";
}

std::string cores_text(const RankInfo& info) {
    std::string text = std::to_string(info.own_cores);
    if (info.cores != info.own_cores)
        text += " (of " + std::to_string(info.cores) + " shared)";
    return text;
}

std::string device_text(const Row& row) {
    const bool gpu = row.model->device != "cpu";
    const std::size_t each = row.ranks.size() / row.hosts.size();
    return (gpu && each > 1 ? std::to_string(each) + " x " : "") + row.model->device_name;
}

std::string format(const std::vector<Cells>& lines) {
    std::vector<std::size_t> widths(lines.front().size());
    for (const Cells& cells : lines)
        for (std::size_t i = 0; i < cells.size(); ++i)
            widths[i] = std::max(widths[i], cells[i].size());
    std::string text;
    for (const Cells& cells : lines) {
        std::string line;
        for (std::size_t i = 0; i < cells.size(); ++i)
            line += cells[i] + std::string(widths[i] - cells[i].size() + 2, ' ');
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}

}  // namespace

std::string Topology::table() const {
    std::vector<Cells> lines{{"host", "ranks", "device", "memory each", "cores each"}};
    for (const Row& row : make_rows(*this))
        lines.push_back({host_ranges(row.hosts),
                         rank_ranges(row.ranks),
                         device_text(row),
                         memory_text(row.model->memory_mb),
                         cores_text(*row.model)});
    std::string text = format(lines);
    for (const auto& together : shared_devices())
        text += name_ranks(together) + " share one " + rank(together.front()).device_name + '\n';
    return text;
}

}  // namespace hetseq
