#include "host_ranges.hpp"

#include <algorithm>
#include <map>

namespace hetseq {

namespace {

// "gpu" and "07" of "gpu07"; a number too long to count with stays in the stem.
struct SplitName {
    std::string stem;
    std::string digits;
};

SplitName split(const std::string& name) {
    const auto last = name.find_last_not_of("0123456789");
    const std::size_t begin = last == std::string::npos ? 0 : last + 1;
    constexpr std::size_t longest = 9;
    if (name.size() - begin > longest)
        return {name, ""};
    return {name.substr(0, begin), name.substr(begin)};
}

// "01-02,05" of {"01", "02", "05"}, all of one width.
std::string number_ranges(std::vector<std::string> numbers) {
    std::sort(numbers.begin(), numbers.end());
    std::string text;
    for (std::size_t begin = 0; begin < numbers.size();) {
        std::size_t end = begin + 1;
        while (end < numbers.size() && std::stol(numbers[end]) == std::stol(numbers[end - 1]) + 1)
            ++end;
        text += (text.empty() ? "" : ",") + numbers[begin];
        if (end - begin > 1)
            text += "-" + numbers[end - 1];
        begin = end;
    }
    return text;
}

}  // namespace

std::string host_ranges(const std::vector<std::string>& hosts) {
    std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // in order of appearance
    std::map<std::string, std::size_t> group_of;
    for (const std::string& host : hosts) {
        const SplitName name = split(host);
        const std::string key = name.stem + '\n' + std::to_string(name.digits.size());
        const auto [found, is_new] = group_of.emplace(key, groups.size());
        if (is_new)
            groups.push_back({name.stem, {}});
        groups[found->second].second.push_back(name.digits);
    }
    std::string text;
    for (const auto& [stem, numbers] : groups) {
        text += (text.empty() ? "" : ", ") + stem;
        text += numbers.size() == 1 ? numbers.front() : "[" + number_ranges(numbers) + "]";
    }
    return text;
}

}  // namespace hetseq
