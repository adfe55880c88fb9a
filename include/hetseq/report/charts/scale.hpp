#pragma once

#include <string>
#include <vector>

#include "hetseq/report/charts/series.hpp"

namespace hetseq {

enum class Spacing { linear, logarithmic };

/// An axis: its round ticks, and the place of a value between its ends.
class Scale {
public:
    /// Begins and ends at round numbers around `range`, with about `ticks` ticks. A logarithmic
    /// axis needs a range above 0.
    static Scale around(Interval range, Spacing spacing, int ticks = 5);
    /// Exactly `range`, widened if it is a single value; the ticks are whole numbers.
    static Scale of_counts(Interval range, int ticks = 7);
    /// Exactly from 0 to `length` (> 0).
    static Scale of_length(double length, int ticks = 5);

    /// 0 at the low end, 1 at the high one.
    double position(double value) const;
    Interval range() const noexcept { return range_; }
    const std::vector<double>& ticks() const noexcept { return ticks_; }

private:
    Scale(Interval range, Spacing spacing, std::vector<double> ticks)
        : range_{range}, spacing_{spacing}, ticks_{std::move(ticks)} {}

    Interval range_;
    Spacing spacing_;
    std::vector<double> ticks_;
};

/// The nearest of 1, 2, 5 and 10 times a power of ten that is not below `step` (> 0).
double round_step(double step);

/// "0.25", "1500", "20k", "1.5M", "2e-5".
std::string tick_label(double value);

}  // namespace hetseq
