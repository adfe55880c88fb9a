#include "hetseq/comm/host/memory_kills.hpp"

#include <fstream>
#include <string>

#include "control_group.hpp"

namespace hetseq {

namespace {

// The number in a file of lines "name number"; 0 where there is none.
std::int64_t oom_kills_in(const std::filesystem::path& file) {
    std::ifstream stream{file};
    std::string name;
    std::int64_t number = 0;
    while (stream >> name >> number)
        if (name == "oom_kill")
            return number;
    return 0;
}

}  // namespace

std::int64_t memory_kills(const std::filesystem::path& root) {
    std::int64_t kills = oom_kills_in(root / "proc/vmstat");
    for (const auto& group : control_group_folders(root, "memory"))
        kills += oom_kills_in(group / "memory.oom_control");
    for (const auto& group : control_group_folders(root, ""))
        kills += oom_kills_in(group / "memory.events");
    return kills;
}

}  // namespace hetseq
