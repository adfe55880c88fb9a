#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

namespace hetseq::detail {

constexpr double largest_count = 1e15;

/// A count of updates or units, limited to what a run can have. Throws the library's type error if
/// `json` is not a number.
inline std::int64_t count_of(const nlohmann::json& json) {
    return static_cast<std::int64_t>(std::clamp(json.get<double>(), 0.0, largest_count));
}

inline std::vector<std::int64_t> counts_of(const nlohmann::json& json) {
    std::vector<std::int64_t> counts;
    for (const nlohmann::json& count : json)
        counts.push_back(count_of(count));
    return counts;
}

}  // namespace hetseq::detail
