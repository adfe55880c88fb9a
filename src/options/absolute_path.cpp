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

bool names_no_file(const std::string& name) {
    constexpr const char* letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    constexpr const char* others = "0123456789-";
    std::error_code unknown;
    return name.find_first_of(letters) == 0 &&
           name.find_first_not_of(std::string(letters) + others) == std::string::npos &&
           !fs::exists(name, unknown);
}

bool can_be_written(const fs::path& folder) {
    return folder.string().find_first_of("#\r\n") == std::string::npos;
}

}  // namespace hetseq
