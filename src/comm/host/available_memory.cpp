#include "hetseq/comm/host/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include "memory_limits.hpp"

namespace hetseq {

namespace {

std::int64_t available_kib(const std::filesystem::path& root) {
    std::ifstream file(root / "proc/meminfo");
    for (std::string name; file >> name;) {
        std::int64_t kib = 0;
        if (name == "MemAvailable:" && file >> kib)
            return kib;
        file.clear();
        std::getline(file, name);
    }
    return 0;
}

}  // namespace

std::int64_t available_memory_mb(const std::filesystem::path& root) {
    std::int64_t mb = available_kib(root) / 1024;
    for (const MemoryLimit& limit : memory_limits(root))
        mb = std::min(mb, limit.mb);
    return mb;
}

}  // namespace hetseq
