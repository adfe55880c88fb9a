#include "hetseq/options/option_spec.hpp"

#include <algorithm>
#include <cstring>

namespace hetseq {

namespace {

template <class Table>
auto* find_in(Table& table, const std::string& name) {
    const auto found = std::find_if(
        table.begin(), table.end(), [&](const OptionSpec& spec) { return spec.name == name; });
    return found == table.end() ? nullptr : &*found;
}

}  // namespace

const OptionSpec* find_option(const OptionTable& table, const std::string& name) {
    return find_in(table, name);
}

OptionSpec* find_option(OptionTable& table, const std::string& name) {
    return find_in(table, name);
}

std::vector<std::string> names_of(const OptionTable& table) {
    std::vector<std::string> names;
    for (const OptionSpec& spec : table)
        names.push_back(spec.name);
    return names;
}

void check_repeatable(const std::string& text) {
    constexpr const char* blanks = " \t\r\n\v\f";
    const bool has_outer_blanks = !text.empty() && (std::strchr(blanks, text.front()) != nullptr ||
                                                    std::strchr(blanks, text.back()) != nullptr);
    if (has_outer_blanks || text.find_first_of("#\r\n") != std::string::npos)
        throw BadConfig(
            "'" + text + "' holds a '#' or a line's end, or begins or ends with a blank",
            "config.cfg could not repeat it",
            "rename the file");
}

}  // namespace hetseq
