#include "hetseq/session/options/config_file_values.hpp"

#include <filesystem>

#include "hetseq/options/absolute_path.hpp"

namespace hetseq {

namespace fs = std::filesystem;

OptionValues config_file_values(OptionValues values, const OptionTable& table) {
    if (!can_be_written(fs::current_path()))
        return values;
    for (const OptionSpec& spec : table)
        if (const auto value = values.find(spec.name); spec.repeated && value != values.end())
            value->second = spec.repeated(value->second);
    return values;
}

bool names_same_file(const std::string& a, const std::string& b) {
    std::error_code unknown;
    return a == b || fs::equivalent(a, b, unknown);
}

}  // namespace hetseq
