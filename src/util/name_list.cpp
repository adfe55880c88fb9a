#include "hetseq/util/name_list.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string_view>

namespace hetseq {

namespace {

constexpr std::string_view special = ",[]*?\\";
constexpr std::size_t most_joined = 16;  // parts of one name

bool is_special(char c) {
    return special.find(c) != std::string_view::npos;
}

std::string without_blanks(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos)
        return "";
    return std::string(text.substr(begin, text.find_last_not_of(" \t") + 1 - begin));
}

/// What stands between commas without a backslash.
struct Part {
    std::size_t begin = 0, end = 0;  // in the list
};

std::vector<Part> parts_of(const std::string& list) {
    std::vector<Part> parts(1);
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i] == '\\')
            ++i;
        else if (list[i] == ',') {
            parts.back().end = i;
            parts.push_back({i + 1, i + 1});
        }
    }
    parts.back().end = list.size();
    return parts;
}

bool exists(const std::string& name) {
    std::error_code ignored;
    return std::filesystem::exists(name, ignored) ||
           std::filesystem::exists(unescaped_name(name), ignored);
}

}  // namespace

std::string escaped_name(const std::string& name) {
    std::string escaped;
    for (const char c : name) {
        if (is_special(c))
            escaped += '\\';
        escaped += c;
    }
    return escaped;
}

std::string unescaped_name(const std::string& name) {
    std::string text;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name[i] == '\\' && i + 1 < name.size() && is_special(name[i + 1]))
            ++i;
        text += name[i];
    }
    return text;
}

bool is_pattern(const std::string& name) {
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name[i] == '\\')
            ++i;
        else if (name[i] == '*' || name[i] == '?' || name[i] == '[')
            return true;
    }
    return false;
}

std::vector<std::string> split_names(const std::string& list,
                                     const std::function<bool(const std::string&)>& is_there) {
    const std::vector<Part> parts = parts_of(list);
    const auto joined = [&](std::size_t first, std::size_t last) {
        return without_blanks(std::string_view(list).substr(parts[first].begin,
                                                            parts[last].end - parts[first].begin));
    };
    if (parts.size() > 1 && is_there(without_blanks(list)))
        return {without_blanks(list)};
    std::vector<std::string> names;
    for (std::size_t i = 0; i < parts.size();) {
        std::size_t last = i;
        // Most lists hold names without commas, so that two looks at a name suffice.
        const bool stands_alone =
            is_there(joined(i, i)) && (i + 1 == parts.size() || is_there(joined(i + 1, i + 1)));
        if (!stands_alone)
            for (std::size_t end = std::min(parts.size(), i + most_joined);
                 last == i && end > i + 1;
                 --end)
                if (is_there(joined(i, end - 1)))
                    last = end - 1;
        if (const std::string name = joined(i, last); !name.empty())
            names.push_back(name);
        i = last + 1;
    }
    return names;
}

std::vector<std::string> split_file_names(const std::string& list) {
    std::vector<std::string> names = split_names(list, exists);
    for (std::string& name : names) {
        std::error_code ignored;
        if (!std::filesystem::exists(name, ignored))
            name = unescaped_name(name);
    }
    return names;
}

}  // namespace hetseq
