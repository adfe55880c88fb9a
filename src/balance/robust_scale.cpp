#include "hetseq/balance/robust_scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <vector>

#include "median.hpp"

namespace hetseq {

namespace {

constexpr std::ptrdiff_t window = 31;
constexpr std::ptrdiff_t least_ratios = 5;
constexpr std::ptrdiff_t recent = 8;
constexpr std::ptrdiff_t least_before = 4;

}  // namespace

void RobustScale::observe(double ratio) {
    ratios_.push_back(ratio);
    if (std::ssize(ratios_) > window)
        ratios_.pop_front();
    forget_before_a_change();
    if (std::ssize(ratios_) >= least_ratios)
        value_ = median({ratios_.begin(), ratios_.end()});
}

void RobustScale::forget_before_a_change() {
    if (std::ssize(ratios_) < recent + least_before)
        return;
    const auto border = ratios_.end() - recent;
    const std::vector<double> before(ratios_.begin(), border);
    const double middle = median(before);
    const double margin = 3 * std::max(robust_sigma(before, middle), 0.02 * middle);
    const auto above =
        std::count_if(border, ratios_.end(), [&](double ratio) { return ratio > middle + margin; });
    const auto below =
        std::count_if(border, ratios_.end(), [&](double ratio) { return ratio < middle - margin; });
    if (std::max(above, below) >= recent - 1)
        ratios_.erase(ratios_.begin(), border);
}

double RobustScale::standard_error() const {
    if (std::ssize(ratios_) < least_ratios)
        return 0.05;
    const double sigma =
        std::max(robust_sigma({ratios_.begin(), ratios_.end()}, value_), 0.01 * value_);
    return error_of_median(sigma / value_, ratios_.size());
}

}  // namespace hetseq
