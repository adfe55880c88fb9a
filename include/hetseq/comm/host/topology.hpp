#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

class HostComm;

/// The word of --device for a rank. Automatic: a GPU that no other rank uses, otherwise the CPU.
enum class DeviceChoice { automatic, cpu, cuda };

/// One rank's place in the job.
struct RankInfo {
    int rank = 0;
    std::string host;         // unique: two hosts that bear one name become "name" and "name (2)"
    int local_rank = 0;       // among the ranks of its host
    std::string device;       // "cpu" or "cuda:0"
    std::string device_name;  // "AMD EPYC ..." or "NVIDIA H200"
    std::string device_uuid;  // empty for a CPU
    std::string mark;         // of the device, the same in all jobs that start as many ranks there
    int cores = 1;  // cores this process may use, by affinity and cgroup quota (rounded up)
    /// Whole cores for this rank if the ranks of a host divide the cores that they share evenly; at
    /// least 1. A rank should not have more threads than this.
    int own_cores = 1;
    double cpu_share = 1;        // the same before it is rounded [cores]
    int host_cores = 1;          // that the ranks of its host may use together
    std::int64_t memory_mb = 0;  // of the device, or of the host's share this process may use [MiB]

    bool has_gpu() const { return !device_uuid.empty(); }
};

/// Every rank's place, the same on all ranks.
struct Topology {
    std::vector<RankInfo> ranks;  // by rank
    int hosts = 0;

    const RankInfo& rank(int rank) const { return ranks.at(static_cast<std::size_t>(rank)); }
    /// How many ranks share the host of `rank`.
    int ranks_on_host_of(int rank) const;
    /// Groups of ranks that use one GPU together (by UUID); empty if there are none.
    std::vector<std::vector<int>> shared_devices() const;
    /// A table of hosts, ranks, devices and cores for the start report; unlike hosts have separate
    /// rows.
    std::string table() const;
};

/// Collective. Chooses this rank's device, makes it current, and gathers every rank's place. A rank
/// takes the first free one of the GPUs that it sees, in the order of local ranks; `cuda` shares
/// one where none is free. Throws DeviceError on all ranks if a GPU is requested but missing.
/// `before`: this rank's place among more ranks, of which some were left out; null: there were
/// none. It keeps its device, though others may be free now, and that device's mark.
Topology discover_topology(const HostComm& world,
                           DeviceChoice choice,
                           const RankInfo* before = nullptr);

}  // namespace hetseq
