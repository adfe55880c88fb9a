#include "hetseq/session/repeatable_values.hpp"

#include <filesystem>
#include <string_view>

#include "hetseq/util/name_list.hpp"
#include "hetseq/data/files/shard_spec.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

std::string absolute(const std::string& path) {
    return path.empty() || path.front() == '/' ? path : (fs::current_path() / path).string();
}

// Files, folders and globs separated by commas. A name that exists is taken as it is, and is
// escaped so that it is read again when it exists no more.
std::string absolute_list(const std::string& list) {
    const std::string here = escaped_name((fs::current_path() / "").string());
    std::string paths;
    for (const std::string& name : names_in_spec(list)) {
        std::error_code unknown;
        const std::string path = fs::exists(name, unknown) ? escaped_name(name) : name;
        paths += (paths.empty() ? "" : ",") + (path.front() == '/' ? path : here + path);
    }
    return paths;
}

// Names such as "base" are not paths.
std::string absolute_file(const std::string& name_or_file) {
    std::error_code unknown;
    return fs::is_regular_file(name_or_file, unknown) &&
                   name_or_file.find_first_of("./") != std::string::npos
               ? absolute(name_or_file)
               : name_or_file;
}

std::string absolute_cache(const std::string& folder) {
    return folder == "none" ? folder : absolute(folder);
}

std::string absolute_balance(const std::string& balance) {
    constexpr std::string_view prefix = "file:";
    return balance.rfind(prefix, 0) == 0
               ? std::string(prefix) + absolute(balance.substr(prefix.size()))
               : balance;
}

bool can_be_written(const fs::path& folder) {
    const std::string name = folder.string();
    return name.find_first_of("#\r\n") == std::string::npos;
}

}  // namespace

OptionValues repeatable_values(OptionValues values) {
    if (!can_be_written(fs::current_path()))
        return values;
    const auto change = [&](const char* name, std::string (*to_absolute)(const std::string&)) {
        const auto value = values.find(name);
        if (value != values.end())
            value->second = to_absolute(value->second);
    };
    change("data", absolute_list);
    change("valid-data", absolute_list);
    change("init-model", absolute);
    change("model-config", absolute_file);
    change("balance", absolute_balance);
    change("cache-dir", absolute_cache);
    return values;
}

bool names_same_file(const std::string& a, const std::string& b) {
    std::error_code unknown;
    return a == b || fs::equivalent(a, b, unknown);
}

}  // namespace hetseq
