#include "hetseq/data/files/shard_names.hpp"

#include <algorithm>
#include <cstdio>
#include <regex>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/data/files/shard_spec.hpp"

namespace hetseq {

namespace fs = std::filesystem;

namespace {

void require_done(const std::error_code& error, const std::string& problem) {
    if (error)
        throw IoError(problem, error.message(), "check the folder, or choose another --output");
}

// By name; none where there is no such folder.
std::vector<fs::path> shards_in(const std::string& folder) {
    static const std::regex form(R"(.+-\d{5}-of-\d{5}\.h5)");
    std::vector<fs::path> shards;
    std::error_code error;
    if (!fs::is_directory(folder, error))
        return shards;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error))
        if (std::regex_match(entry->path().filename().string(), form))
            shards.push_back(entry->path());
    require_done(error, "cannot list " + folder);
    std::sort(shards.begin(), shards.end());
    return shards;
}

fs::path mark_of(const std::string& folder) {
    return fs::path(folder) / unfinished_preparation;
}

}  // namespace

std::string shard_name(const std::string& set, std::int64_t shard, std::int64_t shards) {
    char suffix[64];
    std::snprintf(suffix,
                  sizeof suffix,
                  "-%05lld-of-%05lld.h5",
                  static_cast<long long>(shard),
                  static_cast<long long>(shards));
    return set + suffix;
}

void prepare_shard_folder(const std::string& folder, bool overwrite) {
    const std::vector<fs::path> found = shards_in(folder);
    if (!found.empty() && !overwrite)
        throw BadConfig(found.front().string() + " exists",
                        std::to_string(found.size()) + " shards are there already",
                        "choose another --output, or give --overwrite to replace them all");
    std::error_code error;
    fs::create_directories(folder, error);
    require_done(error, "cannot make the folder " + folder);
}

void begin_replacing_shards(const std::string& folder) {
    write_atomically(mark_of(folder),
                     "The shards of this folder are being replaced. If nothing does so any more, "
                     "prepare them again with --overwrite.\n");
    for (const fs::path& shard : shards_in(folder)) {
        std::error_code error;
        fs::remove(shard, error);
        require_done(error, "cannot remove " + shard.string());
    }
}

void end_replacing_shards(const std::string& folder) {
    std::error_code error;
    fs::remove(mark_of(folder), error);
    require_done(error, "cannot remove " + mark_of(folder).string());
    sync_folder(folder);
}

}  // namespace hetseq
