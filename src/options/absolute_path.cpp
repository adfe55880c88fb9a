#include "hetseq/options/absolute_path.hpp"

#include <system_error>

namespace hetseq {

namespace fs = std::filesystem;

std::string absolute_path(const std::string& path) {
    return path.empty() || path.front() == '/' ? path : (fs::current_path() / path).string();
}

std::string absolute_if_file(const std::string& name_or_file) {
    std::error_code unknown;
    return fs::is_regular_file(name_or_file, unknown) &&
                   name_or_file.find_first_of("./") != std::string::npos
               ? absolute_path(name_or_file)
               : name_or_file;
}

namespace {

bool has_letters_of_name(const std::string& name) {
    constexpr const char* letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    constexpr const char* others = "0123456789-";
    return name.find_first_of(letters) == 0 &&
           name.find_first_not_of(std::string(letters) + others) == std::string::npos;
}

bool holds_no_shards(const fs::path& folder) {
    std::error_code failure;
    fs::directory_iterator entry(folder, failure);
    for (; !failure && entry != fs::directory_iterator(); entry.increment(failure))
        if (const fs::path ending = entry->path().extension(); ending == ".h5" || ending == ".hdf5")
            return false;
    return !failure;
}

}  // namespace

bool names_no_file(const std::string& name) {
    std::error_code unknown;
    return has_letters_of_name(name) && !fs::exists(name, unknown);
}

bool may_name_split(const std::string& name) {
    return names_no_file(name) || (has_letters_of_name(name) && holds_no_shards(name));
}

bool can_be_written(const fs::path& folder) {
    return folder.string().find_first_of("#\r\n") == std::string::npos;
}

}  // namespace hetseq
