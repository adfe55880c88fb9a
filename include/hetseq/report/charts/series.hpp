#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace hetseq {

/// A curve's points, by rising `x`. A `y` that is not finite is a gap.
struct Series {
    std::vector<double> x, y;

    std::size_t size() const noexcept { return x.size(); }
    void add(double at, double value) {
        x.push_back(at);
        y.push_back(value);
    }
};

struct Interval {
    double low = 0, high = 0;
};

/// From the lowest to the highest finite value; empty if there is none.
std::optional<Interval> finite_range(const std::vector<double>& values);

/// True if all finite values, of which there are some, lie from 0 to 1: such as an accuracy.
bool is_share(const Series& series);

/// At most two points for each of `columns` equal parts of `range`: the lowest and the highest in
/// it; also the first and the last point of all. This is what a drawing of that many pixels can
/// show. A part that holds only gaps becomes a gap. Points outside `range` are left out.
Series downsampled(const Series& series, Interval range, int columns);

/// One point for each part: the mean of its finite values, at the mean of their places.
Series column_means(const Series& series, Interval range, int columns);

/// The index of the point nearest to `x`, gaps included; empty if there are no points.
std::optional<std::size_t> nearest_point(const Series& series, double x);

}  // namespace hetseq
