#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hetseq {

/// The logical CPUs this process is bound to (sched_getaffinity), ascending.
std::vector<int> bound_cpus();

/// CPU time per wall time that the control group allows, in cores; empty without a limit. The
/// tightest limit on the way from this process's group to the root counts. `root` is where the
/// kernel's /proc and /sys are found ("/" but for tests).
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// Cores that the processes of this process's control group may use together: the group's CPU set,
/// or all online cores, limited by the quota (rounded up); at least 1.
int group_cores(const std::filesystem::path& root = "/");

/// The host's memory [MiB], whatever control groups allow of it.
std::int64_t host_memory_mb(const std::filesystem::path& root = "/");

/// The processor's name as the kernel has it, e.g. "AMD EPYC 7763 64-Core Processor".
std::string cpu_model_name(const std::filesystem::path& root = "/");

}  // namespace hetseq
