#include "cpu_resources.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <utility>

#include <sys/utsname.h>

#include "control_group.hpp"
#include <sched.h>

namespace hetseq {

namespace {

namespace fs = std::filesystem;

std::optional<double> number(const std::string& text) {
    std::istringstream stream{text};
    double value = 0;
    if (stream >> value)
        return value;
    return std::nullopt;
}

// cpu.max of version 2: "max 100000" or "150000 100000".
std::optional<double> quota_v2(const fs::path& group) {
    std::istringstream line{first_line(group / "cpu.max")};
    std::string quota;
    double period_us = 0;
    if (!(line >> quota >> period_us) || quota == "max" || period_us <= 0)
        return std::nullopt;
    return number(quota).value_or(0) / period_us;
}

std::optional<double> quota_v1(const fs::path& group) {
    const auto quota_us = number(first_line(group / "cpu.cfs_quota_us"));
    const auto period_us = number(first_line(group / "cpu.cfs_period_us"));
    if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0)
        return std::nullopt;
    return *quota_us / *period_us;
}

// The smallest of the limits that `read` finds in `folders`.
template <class Read>
std::optional<double> tightest(const std::vector<fs::path>& folders, Read read) {
    std::optional<double> smallest;
    for (const auto& folder : folders)
        if (const std::optional<double> limit = read(folder))
            smallest = std::min(smallest.value_or(*limit), *limit);
    return smallest;
}

// The value of the line that starts with `key` in a file of "key : value" lines.
std::string value_of(const fs::path& file, const std::string& key) {
    std::ifstream stream{file};
    for (std::string line; std::getline(stream, line);) {
        const auto colon = line.find(':');
        if (line.rfind(key, 0) != 0 || colon == std::string::npos)
            continue;
        const auto begin = line.find_first_not_of(" \t", colon + 1);
        return begin == std::string::npos ? "" : line.substr(begin);
    }
    return {};
}

// How many numbers a list such as "0-3,8" holds.
int count_listed(const std::string& list) {
    int count = 0;
    std::istringstream ranges{list};
    for (std::string range; std::getline(ranges, range, ',');) {
        const auto first = number(range);
        const auto dash = range.find('-');
        const auto last = dash == std::string::npos ? first : number(range.substr(dash + 1));
        if (first && last)
            count += static_cast<int>(*last - *first) + 1;
    }
    return count;
}

// The cores of the nearest group that has a CPU set; 0 if none has one.
int cpu_set_cores(const fs::path& root) {
    for (const auto& [controller, file] :
         {std::pair{"", "cpuset.cpus.effective"}, std::pair{"cpuset", "cpuset.effective_cpus"}})
        for (const fs::path& group : control_group_folders(root, controller))
            if (const int cores = count_listed(first_line(group / file)))
                return cores;
    return 0;
}

}  // namespace

std::vector<int> bound_cpus() {
    // Larger than cpu_set_t's 1024 CPUs: on hosts with more, the kernel refuses a set of that size.
    constexpr int most_cpus = 8192;
    cpu_set_t* set = CPU_ALLOC(most_cpus);
    const std::size_t bytes = CPU_ALLOC_SIZE(most_cpus);
    CPU_ZERO_S(bytes, set);
    std::vector<int> cpus;
    if (sched_getaffinity(0, bytes, set) == 0)
        for (int cpu = 0; cpu < most_cpus; ++cpu)
            if (CPU_ISSET_S(cpu, bytes, set))
                cpus.push_back(cpu);
    CPU_FREE(set);
    return cpus.empty() ? std::vector<int>{0} : cpus;
}

std::optional<double> cpu_quota(const fs::path& root) {
    const auto v2 = tightest(control_group_folders(root, ""), quota_v2);
    const auto v1 = tightest(control_group_folders(root, "cpu"), quota_v1);
    if (v1 && v2)
        return std::min(*v1, *v2);
    return v1 ? v1 : v2;
}

int group_cores(const fs::path& root) {
    int cores = cpu_set_cores(root);
    if (cores == 0)
        cores = count_listed(first_line(root / "sys/devices/system/cpu/online"));
    if (const auto quota = cpu_quota(root))
        cores = std::min(cores, static_cast<int>(std::ceil(*quota)));
    return std::max(1, cores);
}

std::int64_t host_memory_mb(const fs::path& root) {
    const double kib = number(value_of(root / "proc/meminfo", "MemTotal")).value_or(0);
    return static_cast<std::int64_t>(kib / 1024);
}

std::string cpu_model_name(const fs::path& root) {
    std::string name = value_of(root / "proc/cpuinfo", "model name");
    if (!name.empty())
        return name;
    utsname system{};
    return uname(&system) == 0 ? std::string(system.machine) + " processor" : "processor";
}

}  // namespace hetseq
