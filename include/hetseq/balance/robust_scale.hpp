#pragma once

#include <deque>

namespace hetseq {

/// How many times as long as predicted a rank takes: the median of its last 31 ratios of measured
/// to predicted time, its prior value until there are 5.
///
/// When at least 7 of the last 8 ratios lie on one side of the median of those before (at least 4)
/// by more than 3 sigma, sigma being 1.4826 times their median absolute deviation and no less than
/// 2 % of the median, the speed has changed: those before are forgotten. That lets the window be
/// long, and so the scale steady, without being late.
class RobustScale {
public:
    explicit RobustScale(double prior = 1) : value_{prior} {}

    /// `ratio` > 0.
    void observe(double ratio);

    double value() const { return value_; }
    /// Of value(), relative: 1.2533 sigma / sqrt(n) for n ratios, the median's for normal noise;
    /// sigma as above, at least 1 % of the value; 5 % before there are 5 ratios.
    double standard_error() const;

private:
    void forget_before_a_change();

    std::deque<double> ratios_;
    double value_;
};

}  // namespace hetseq
