#pragma once

#include <algorithm>
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

}  // namespace hetseq
