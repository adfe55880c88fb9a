#include "hetseq/comm/host/topology.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "cpu_resources.hpp"
#include "cuda_devices.hpp"
#include "device_choice.hpp"
#include "memory_limits.hpp"

namespace hetseq {

namespace {

// Cores of this rank when each CPU is divided among the ranks bound to it, and the quota
// among the ranks of the host.
double divide_cores(const HostComm& node,
                    const std::vector<int>& mine,
                    const std::optional<double>& quota) {
    std::string list;
    for (const int cpu : mine)
        list += std::to_string(cpu) + " ";
    std::map<int, int> users;
    for (const std::string& cpus : node.all_gather(list)) {
        std::istringstream stream{cpus};
        for (int cpu = 0; stream >> cpu;)
            ++users[cpu];
    }
    double share = 0;
    for (const int cpu : mine)
        share += 1.0 / users[cpu];
    if (quota)
        share = std::min(share, *quota / node.size());
    return share;
}

// Collective over the ranks of a host: what this rank may use of the host's memory [MiB].
std::int64_t divide_host_memory(const HostComm& node) {
    std::string list;
    for (const MemoryLimit& limit : memory_limits())
        list += limit.group + " " + std::to_string(limit.mb) + " ";
    std::vector<std::vector<MemoryLimit>> limits;
    for (const std::string& own : node.all_gather(list)) {
        std::istringstream stream{own};
        limits.emplace_back();
        for (MemoryLimit limit; stream >> limit.group >> limit.mb;)
            limits.back().push_back(limit);
    }
    return divide_memory(host_memory_mb(), limits, static_cast<std::size_t>(node.rank()));
}

// Collective over the ranks of a host; by local rank.
std::vector<DeviceWish> gather_wishes(const HostComm& node,
                                      DeviceChoice choice,
                                      const VisibleCudaDevices& visible) {
    std::string list;
    for (const CudaDevice& device : visible.devices)
        list += device.uuid + " ";
    const auto choices = node.all_gather(static_cast<std::int64_t>(choice));
    const auto lists = node.all_gather(list);
    std::vector<DeviceWish> wishes(lists.size());
    for (std::size_t r = 0; r < wishes.size(); ++r) {
        wishes[r].choice = static_cast<DeviceChoice>(choices[r]);
        std::istringstream stream{lists[r]};
        for (std::string uuid; stream >> uuid;)
            wishes[r].gpus.push_back(uuid);
    }
    return wishes;
}

// Collective.
void choose_device(const HostComm& world,
                   const HostComm& node,
                   DeviceChoice choice,
                   RankInfo& info) {
    const VisibleCudaDevices visible = agree_on(world, [&] {
        return choice == DeviceChoice::cpu ? VisibleCudaDevices{} : visible_cuda_devices();
    });
    const auto given = share_out_gpus(gather_wishes(node, choice, visible));
    const auto gpu = agree_on(world, [&] {
        const auto index =
            checked_gpu(given[static_cast<std::size_t>(node.rank())], choice, visible);
        if (index)
            make_cuda_device_current(*index);
        return index;
    });
    if (gpu) {
        const CudaDevice& device = visible.devices[static_cast<std::size_t>(*gpu)];
        info.device = "cuda:" + std::to_string(*gpu);
        info.device_name = device.name;
        info.device_uuid = device.uuid;
        info.memory_mb = device.memory_mb;
    } else {
        info.device = "cpu";
        info.device_name = cpu_model_name();
    }
}

// The device is the current one of this process already.
void keep_device(const RankInfo& before, RankInfo& info) {
    info.device = before.device;
    info.device_name = before.device_name;
    info.device_uuid = before.device_uuid;
    info.mark = before.mark;
    if (before.has_gpu())
        info.memory_mb = before.memory_mb;
}

// Collective.
RankInfo describe_rank(const HostComm& world,
                       const HostComm& node,
                       DeviceChoice choice,
                       const RankInfo* before) {
    RankInfo info;
    info.rank = world.rank();
    info.host = host_name();
    info.local_rank = node.rank();

    const auto cpus = bound_cpus();
    const auto quota = cpu_quota();
    info.cores = static_cast<int>(cpus.size());
    if (quota)
        info.cores = std::max(1, std::min(info.cores, static_cast<int>(std::ceil(*quota))));
    constexpr double rounding = 1e-6;  // three thirds make one core
    info.cpu_share = divide_cores(node, cpus, quota);
    info.own_cores = std::max(1, static_cast<int>(info.cpu_share + rounding));
    info.host_cores = group_cores();
    info.memory_mb = divide_host_memory(node);
    if (before != nullptr)
        keep_device(*before, info);
    else
        choose_device(world, node, choice, info);
    return info;
}

std::vector<RankInfo> gather(const HostComm& world, const RankInfo& mine) {
    const auto hosts = world.all_gather(mine.host);
    const auto local_ranks = world.all_gather(std::int64_t{mine.local_rank});
    const auto devices = world.all_gather(mine.device);
    const auto device_names = world.all_gather(mine.device_name);
    const auto device_uuids = world.all_gather(mine.device_uuid);
    const auto marks = world.all_gather(mine.mark);
    const auto cores = world.all_gather(std::int64_t{mine.cores});
    const auto own_cores = world.all_gather(std::int64_t{mine.own_cores});
    const auto cpu_shares = world.all_gather(mine.cpu_share);
    const auto host_cores = world.all_gather(std::int64_t{mine.host_cores});
    const auto memory_mb = world.all_gather(mine.memory_mb);
    std::vector<RankInfo> ranks(hosts.size());
    for (std::size_t i = 0; i < ranks.size(); ++i)
        ranks[i] = {static_cast<int>(i),
                    hosts[i],
                    static_cast<int>(local_ranks[i]),
                    devices[i],
                    device_names[i],
                    device_uuids[i],
                    marks[i],
                    static_cast<int>(cores[i]),
                    static_cast<int>(own_cores[i]),
                    cpu_shares[i],
                    static_cast<int>(host_cores[i]),
                    memory_mb[i]};
    return ranks;
}

// Containers may all be called "localhost": the ranks that share memory make a host, not its name.
// `leaders` has, by rank, the lowest rank of its host.
void make_host_names_unique(std::vector<RankInfo>& ranks,
                            const std::vector<std::int64_t>& leaders) {
    std::map<std::string, int> uses;
    std::map<std::int64_t, std::string> names;
    for (RankInfo& info : ranks) {
        const std::int64_t leader = leaders[static_cast<std::size_t>(info.rank)];
        if (names.count(leader) == 0) {
            const int use = ++uses[info.host];
            names[leader] = use == 1 ? info.host : info.host + " (" + std::to_string(use) + ")";
        }
        info.host = names[leader];
    }
}

void mark_devices(std::vector<RankInfo>& ranks) {
    for (RankInfo& info : ranks)
        if (info.mark.empty())
            info.mark =
                info.host + " " +
                (info.has_gpu() ? info.device_uuid : "cpu " + std::to_string(info.local_rank));
}

}  // namespace

int Topology::ranks_on_host_of(int rank) const {
    const std::string& host = this->rank(rank).host;
    return static_cast<int>(std::count_if(
        ranks.begin(), ranks.end(), [&](const RankInfo& info) { return info.host == host; }));
}

std::vector<std::vector<int>> Topology::shared_devices() const {
    std::map<std::string, std::vector<int>> users;
    for (const RankInfo& info : ranks)
        if (info.has_gpu())
            users[info.device_uuid].push_back(info.rank);
    std::vector<std::vector<int>> shared;
    for (const auto& [uuid, together] : users)
        if (together.size() > 1)
            shared.push_back(together);
    std::sort(shared.begin(), shared.end());
    return shared;
}

Topology discover_topology(const HostComm& world, DeviceChoice choice, const RankInfo* before) {
    const HostComm node = world.split_by_host();
    Topology topology;
    topology.ranks = gather(world, describe_rank(world, node, choice, before));
    const std::int64_t leader = node.broadcast(std::int64_t{world.rank()}, 0);
    const auto leaders = world.all_gather(leader);
    make_host_names_unique(topology.ranks, leaders);
    mark_devices(topology.ranks);
    topology.hosts = static_cast<int>(std::set(leaders.begin(), leaders.end()).size());
    return topology;
}

}  // namespace hetseq
