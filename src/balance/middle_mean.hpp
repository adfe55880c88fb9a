#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <span>
#include <vector>

namespace hetseq {

/// The mean of the middle half of ascending values, of at least one. It is steady for a rank that
/// alternates between two speeds, and ignores single stalls.
inline double middle_mean_of_sorted(std::span<const double> values) {
    const auto cut = static_cast<std::ptrdiff_t>(values.size() / 4);
    return std::accumulate(values.begin() + cut, values.end() - cut, 0.0) /
           static_cast<double>(std::ssize(values) - 2 * cut);
}

/// The same of values in any order.
inline double middle_mean(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return middle_mean_of_sorted(values);
}

/// Members of a group (of equal `groups`) take the mean of their values.
inline void pool(std::vector<double>& values, const std::vector<int>& groups) {
    std::map<int, std::vector<double>> members;
    for (std::size_t r = 0; r < values.size(); ++r)
        members[groups[r]].push_back(values[r]);
    std::map<int, double> means;
    for (auto& [group, of_group] : members)
        means[group] = middle_mean(std::move(of_group));
    for (std::size_t r = 0; r < values.size(); ++r)
        values[r] = means[groups[r]];
}

}  // namespace hetseq
