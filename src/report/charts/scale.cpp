#include "hetseq/report/charts/scale.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

constexpr std::array<double, 4> round_factors{1, 2, 5, 10};
constexpr double tolerance = 1e-9;  // of a step, for sums of rounded numbers

constexpr double least_width = 1e-6;  // of a range, relative to its values: no curve shows less

std::vector<double> multiples(double step, double low, double high) {
    std::vector<double> values;
    for (double k = std::ceil(low / step - tolerance); k * step <= high + tolerance * step; ++k)
        values.push_back(k * step + 0.0);  // no -0
    return values;
}

// A single value gets a neighbourhood of its own size, and so do values that differ by rounding.
Interval widened(Interval range) {
    const double size = std::max(std::abs(range.low), std::abs(range.high));
    if (range.high - range.low > least_width * size)
        return range;
    const double margin = size == 0 ? 1 : size / 10;
    return {range.low - margin, range.high + margin};
}

double power_of_ten(double exponent) {
    return std::pow(10.0, exponent);
}

// 1, 2 and 5 times powers of ten, or only every n-th power where these would be more than `most`.
std::vector<double> log_candidates(int low, int high, int most) {
    std::vector<double> values;
    const int every = std::max(1, (high - low) / most);
    for (int exponent = low; exponent <= high; exponent += every)
        for (const double factor : {1.0, 2.0, 5.0})
            if (factor == 1 || (high - low) * 3 <= 2 * most)
                values.push_back(factor * power_of_ten(exponent));
    return values;
}

}  // namespace

double round_step(double step) {
    const double unit = power_of_ten(std::floor(std::log10(step)));
    for (const double factor : round_factors)
        if (factor * unit >= step * (1 - tolerance))
            return factor * unit;
    return 10 * unit;
}

Scale Scale::around(Interval range, Spacing spacing, int ticks) {
    if (spacing == Spacing::logarithmic) {
        const int low = static_cast<int>(std::floor(std::log10(range.low)));
        const int high = static_cast<int>(std::ceil(std::log10(range.high) + tolerance));
        std::vector<double> values = log_candidates(low, high, ticks);
        while (values.size() > 2 && values[1] <= range.low)
            values.erase(values.begin());
        while (values.size() > 2 && values[values.size() - 2] >= range.high)
            values.pop_back();
        const Interval ends{std::min(values.front(), range.low),
                            std::max(values.back(), range.high)};
        return Scale(ends, spacing, values);
    }
    range = widened(range);
    const double step = round_step((range.high - range.low) / ticks);
    range = {std::floor(range.low / step + tolerance) * step,
             std::ceil(range.high / step - tolerance) * step};
    return Scale(range, spacing, multiples(step, range.low, range.high));
}

Scale Scale::of_counts(Interval range, int ticks) {
    if (range.high <= range.low)
        range = {range.low - 1, range.high + 1};
    const double step = std::max(1.0, round_step((range.high - range.low) / ticks));
    return Scale(range, Spacing::linear, multiples(step, range.low, range.high));
}

Scale Scale::of_length(double length, int ticks) {
    return Scale({0, length}, Spacing::linear, multiples(round_step(length / ticks), 0, length));
}

double Scale::position(double value) const {
    if (spacing_ == Spacing::logarithmic)
        return std::log(value / range_.low) / std::log(range_.high / range_.low);
    return (value - range_.low) / (range_.high - range_.low);
}

std::string tick_label(double value) {
    const double size = std::abs(value);
    if (size >= 1e9)
        return format_number(value / 1e9, 6) + "G";
    if (size >= 1e6)
        return format_number(value / 1e6, 6) + "M";
    if (size >= 1e4)
        return format_number(value / 1e3, 6) + "k";
    if (size > 0 && size < 1e-3) {
        const int exponent = static_cast<int>(std::floor(std::log10(size) + tolerance));
        return format_number(value / power_of_ten(exponent), 4) + "e" + std::to_string(exponent);
    }
    return format_number(value, 6);
}

}  // namespace hetseq
