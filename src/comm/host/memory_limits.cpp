#include "memory_limits.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <sys/stat.h>

#include "control_group.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

// The kernel's number of its folder: containers may all call their group "/", and see one group by
// paths of their own.
std::optional<std::string> group_name(const std::string& version, const fs::path& group) {
    struct stat folder {};
    if (::stat(group.c_str(), &folder) != 0)
        return std::nullopt;
    return version + ":" + std::to_string(folder.st_ino);
}

// "max" of version 2 is no limit; version 1 writes a number that no host has.
void add_limit(std::vector<MemoryLimit>& limits,
               const std::string& version,
               const fs::path& group,
               const char* file) {
    const std::string text = first_line(group / file);
    std::int64_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    constexpr std::int64_t most_bytes = std::int64_t{1} << 60;
    const std::optional<std::string> name = group_name(version, group);
    if (name && error == std::errc() && bytes < most_bytes)
        limits.push_back({*name, bytes >> 20});
}

}  // namespace

std::vector<MemoryLimit> memory_limits(const fs::path& root) {
    std::vector<MemoryLimit> limits;
    for (const fs::path& group : control_group_folders(root, ""))
        add_limit(limits, "v2", group, "memory.max");
    for (const fs::path& group : control_group_folders(root, "memory"))
        add_limit(limits, "v1", group, "memory.limit_in_bytes");
    return limits;
}

std::int64_t divide_memory(std::int64_t host_mb,
                           const std::vector<std::vector<MemoryLimit>>& limits,
                           std::size_t rank) {
    std::int64_t least = host_mb / std::ssize(limits);
    for (const MemoryLimit& limit : limits.at(rank)) {
        const auto ranks = std::count_if(limits.begin(), limits.end(), [&](const auto& other) {
            return std::any_of(other.begin(), other.end(), [&](const MemoryLimit& own) {
                return own.group == limit.group;
            });
        });
        least = std::min(least, limit.mb / ranks);
    }
    return least;
}

}  // namespace hetseq
