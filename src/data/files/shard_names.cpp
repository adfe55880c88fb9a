#include "hetseq/data/files/shard_names.hpp"

#include <algorithm>
#include <cstdio>
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

std::vector<fs::path> shards_in(const std::string& folder, const std::string& set) {
    std::vector<fs::path> shards;
    if (!fs::is_directory(folder))
        return shards;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        if (name.rfind(set + "-", 0) == 0 && entry.path().extension() == ".h5")
            shards.push_back(entry.path());
    }
    if (error)
        throw IoError("cannot list " + folder, error.message(), "choose another --output");
    std::sort(shards.begin(), shards.end());
    return shards;
}

void check_no_other_shards(const std::string& folder, const std::string& set, std::int64_t shards) {
    std::set<std::string> expected;
    for (std::int64_t shard = 0; shard < shards; ++shard)
        expected.insert(shard_name(set, shard, shards));
    for (const fs::path& found : shards_in(folder, set))
        if (!expected.contains(found.filename().string()))
            throw BadConfig(found.string() + " is in the way",
                            "it would be read beside the new shards of " + set,
                            "remove it or choose another --output");
}

}  // namespace hetseq
