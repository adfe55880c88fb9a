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

void prepare_shard_folder(const std::string& folder,
                          const std::vector<std::string>& sets,
                          bool overwrite) {
    for (const std::string& set : sets) {
        const std::vector<fs::path> found = shards_in(folder, set);
        if (!found.empty() && !overwrite)
            throw BadConfig(
                found.front().string() + " exists",
                std::to_string(found.size()) + " shards of " + set + " are there already",
                "choose another --output, or give --overwrite to replace them");
    }
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        throw IoError("cannot make the folder " + folder, error.message());
}

void remove_other_shards(const std::string& folder, const std::string& set, std::int64_t shards) {
    for (const fs::path& found : shards_in(folder, set)) {
        bool is_new = false;
        for (std::int64_t i = 0; i < shards && !is_new; ++i)
            is_new = found.filename() == shard_name(set, i, shards);
        std::error_code error;
        if (!is_new && !fs::remove(found, error) && error)
            throw IoError("cannot remove " + found.string(), error.message());
    }
}

}  // namespace hetseq
