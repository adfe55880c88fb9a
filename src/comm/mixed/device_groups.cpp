#include "device_groups.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "hetseq/comm/host/rank_ranges.hpp"

namespace hetseq {

namespace {

// The ranks with a GPU that share a value of `key`, by that value.
std::map<std::string, std::vector<int>> ranks_by(const std::vector<RankDevice>& devices,
                                                 std::string RankDevice::*key) {
    std::map<std::string, std::vector<int>> ranks;
    for (std::size_t r = 0; r < devices.size(); ++r)
        if (!devices[r].gpu.empty())
            ranks[devices[r].*key].push_back(static_cast<int>(r));
    return ranks;
}

}  // namespace

std::vector<int> DeviceGroups::meeting() const {
    std::vector<int> ranks = on_cpu;
    for (const std::vector<int>& group : nccl)
        ranks.push_back(group.front());
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

const std::vector<int>* DeviceGroups::group_of(int rank) const {
    for (const std::vector<int>& group : nccl)
        if (std::find(group.begin(), group.end(), rank) != group.end())
            return &group;
    return nullptr;
}

int DeviceGroups::speaker_of(int rank) const {
    const std::vector<int>* const group = group_of(rank);
    return group == nullptr ? rank : group->front();
}

int DeviceGroups::meeting_rank_of(int rank) const {
    const std::vector<int> ranks = meeting();
    const auto found = std::lower_bound(ranks.begin(), ranks.end(), speaker_of(rank));
    return static_cast<int>(found - ranks.begin());
}

DeviceGroups group_devices(const std::vector<RankDevice>& devices) {
    DeviceGroups groups;
    std::set<std::string> taken;
    std::map<std::string, std::size_t> group_of_version;
    for (std::size_t r = 0; r < devices.size(); ++r) {
        const RankDevice& device = devices[r];
        const int rank = static_cast<int>(r);
        if (device.gpu.empty()) {
            groups.on_cpu.push_back(rank);
        } else if (!taken.insert(device.gpu).second) {
            groups.nccl.push_back({rank});
        } else {
            const auto [found, is_new] =
                group_of_version.emplace(device.nccl_version, groups.nccl.size());
            if (is_new)
                groups.nccl.emplace_back();
            groups.nccl[found->second].push_back(rank);
        }
    }
    return groups;
}

std::vector<std::string> reasons_of(const DeviceGroups& groups,
                                    const std::vector<RankDevice>& devices) {
    std::vector<std::string> reasons;
    if (!groups.on_cpu.empty() && !groups.nccl.empty())
        reasons.push_back("no GPU is used by " + name_ranks(groups.on_cpu));
    for (const auto& [gpu, ranks] : ranks_by(devices, &RankDevice::gpu))
        if (ranks.size() > 1)
            reasons.push_back("one GPU is shared by " + name_ranks(ranks));
    const auto versions = ranks_by(devices, &RankDevice::nccl_version);
    if (versions.size() > 1) {
        std::string list;
        for (const auto& [version, ranks] : versions)
            list += (list.empty() ? "" : ", ") + version + " by " + name_ranks(ranks);
        reasons.push_back("unlike versions of NCCL are loaded: " + list);
    }
    return reasons;
}

}  // namespace hetseq
