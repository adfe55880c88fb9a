#pragma once

#include <string>
#include <vector>

namespace hetseq {

/// A rank's device, which decides with whom it can sum: empty for a CPU.
struct RankDevice {
    std::string gpu;           // which one of all machines; slices of a GPU (MIG) have one `gpu`
    std::string nccl_version;  // that it loads
};

/// How the ranks of a job sum their gradients: NCCL within each group of GPUs, MPI among the first
/// ranks of the groups and those on CPUs.
struct DeviceGroups {
    std::vector<std::vector<int>> nccl;  // by first rank; each rank with a GPU is in one of them
    std::vector<int> on_cpu;             // ascending

    /// The ranks that meet over MPI, ascending.
    std::vector<int> meeting() const;
    /// The group that holds `rank`; null for one on a CPU.
    const std::vector<int>* group_of(int rank) const;
    /// The rank that meets the others over MPI for `rank`: itself, or the first of its group.
    int speaker_of(int rank) const;
    /// The place in `meeting` of the one that meets the others for `rank`.
    int meeting_rank_of(int rank) const;
    /// One of MPI and NCCL does it all.
    bool uniform() const { return nccl.empty() || (nccl.size() == 1 && on_cpu.empty()); }
};

/// NCCL joins GPUs whose ranks load one version of it, a rank each; by default it refuses a second
/// rank on a GPU, on another slice of it too. So the first rank of a GPU is in the group of its
/// version, and each later one in a group of its own. `devices` is by rank.
DeviceGroups group_devices(const std::vector<RankDevice>& devices);

/// Why the ranks are not uniform, a sentence for each reason.
std::vector<std::string> reasons_of(const DeviceGroups& groups,
                                    const std::vector<RankDevice>& devices);

}  // namespace hetseq
