#include "hetseq/data/files/shard_names.hpp"

#include <cstdio>
#include <filesystem>
#include <set>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace fs = std::filesystem;

std::string shard_name(const std::string& set, std::int64_t shard, std::int64_t shards) {
    char suffix[64];
    std::snprintf(suffix,
                  sizeof suffix,
                  "-%05lld-of-%05lld.h5",
                  static_cast<long long>(shard),
                  static_cast<long long>(shards));
    return set + suffix;
}

void check_no_other_shards(const std::string& folder, const std::string& set, std::int64_t shards) {
    if (!fs::is_directory(folder))
        return;
    std::set<std::string> expected;
    for (std::int64_t shard = 0; shard < shards; ++shard)
        expected.insert(shard_name(set, shard, shards));
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        const bool of_set = name.rfind(set + "-", 0) == 0 && entry.path().extension() == ".h5";
        if (of_set && !expected.contains(name))
            throw BadConfig(entry.path().string() + " is in the way",
                            "it would be read beside the new shards of " + set,
                            "remove it or choose another --output");
    }
    if (error)
        throw IoError("cannot list " + folder, error.message(), "choose another --output");
}

}  // namespace hetseq
