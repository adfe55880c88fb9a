#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace hetseq {

/// The middle value, or the mean of the two middle ones; `values` is not empty.
inline double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1)
        return *middle;
    return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

/// A normal distribution's standard deviation, estimated by the median absolute deviation from
/// `middle`.
inline double robust_sigma(std::vector<double> values, double middle) {
    for (double& value : values)
        value = std::abs(value - middle);
    return 1.4826 * median(std::move(values));
}

/// Standard error of the median of `count` normal values.
inline double error_of_median(double sigma, std::size_t count) {
    return 1.2533 * sigma / std::sqrt(static_cast<double>(count));
}

}  // namespace hetseq
