#include "hetseq/train/record/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace hetseq {

Spread spread_of(std::vector<double> values) {
    if (values.empty())
        return {};
    std::sort(values.begin(), values.end());
    const auto quantile = [&](double q) {
        const double place = q * static_cast<double>(values.size() - 1);
        const auto below = static_cast<std::size_t>(std::floor(place));
        const std::size_t above = std::min(below + 1, values.size() - 1);
        return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
    };
    return {quantile(0.5), quantile(0.1), quantile(0.9)};
}

}  // namespace hetseq
