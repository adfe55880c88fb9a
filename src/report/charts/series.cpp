#include "hetseq/report/charts/series.hpp"

#include <algorithm>
#include <cmath>

namespace hetseq {

namespace {

bool lies_in(Interval range, double x) {
    return x >= range.low && x <= range.high;
}

// The range's end belongs to the last one.
long column_of(double x, Interval range, int columns) {
    const double width = (range.high - range.low) / columns;
    return width > 0 ? std::min(columns - 1L, std::lround(std::floor((x - range.low) / width))) : 0;
}

// The points of one column, by index.
struct Column {
    std::size_t first = 0, last = 0, lowest = 0, highest = 0;
    bool has_finite = false;

    void begin(std::size_t i) { *this = {i, i, i, i, false}; }
    void take(const Series& series, std::size_t i) {
        last = i;
        if (!std::isfinite(series.y[i]))
            return;
        if (!has_finite || series.y[i] < series.y[lowest])
            lowest = i;
        if (!has_finite || series.y[i] > series.y[highest])
            highest = i;
        has_finite = true;
    }
    void put(const Series& from, Series& to, bool is_first, bool is_last) const {
        std::vector<std::size_t> kept{has_finite ? lowest : first, has_finite ? highest : first};
        if (is_first)
            kept.push_back(first);
        if (is_last)
            kept.push_back(last);
        std::sort(kept.begin(), kept.end());
        kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
        for (const std::size_t i : kept)
            to.add(from.x[i], from.y[i]);
    }
};

}  // namespace

std::optional<Interval> finite_range(const std::vector<double>& values) {
    std::optional<Interval> range;
    for (const double value : values)
        if (std::isfinite(value))
            range = range ? Interval{std::min(range->low, value), std::max(range->high, value)}
                          : Interval{value, value};
    return range;
}

bool is_share(const Series& series) {
    const auto range = finite_range(series.y);
    return range && range->low >= 0 && range->high <= 1;
}

Series downsampled(const Series& series, Interval range, int columns) {
    Series result;
    Column column;
    long current = -1;
    bool is_first = true;
    for (std::size_t i = 0; i < series.size(); ++i) {
        if (!lies_in(range, series.x[i]))
            continue;
        const long at = column_of(series.x[i], range, columns);
        if (at != current && current >= 0) {
            column.put(series, result, is_first, false);
            is_first = false;
        }
        if (at != current)
            column.begin(i);
        current = at;
        column.take(series, i);
    }
    if (current >= 0)
        column.put(series, result, is_first, true);
    return result;
}

Series column_means(const Series& series, Interval range, int columns) {
    Series result;
    std::size_t i = 0;
    while (i < series.size()) {
        const long at = column_of(series.x[i], range, columns);
        double x = 0, y = 0;
        std::size_t begin = i, count = 0;
        for (; i < series.size() && column_of(series.x[i], range, columns) == at; ++i)
            if (lies_in(range, series.x[i]) && std::isfinite(series.y[i])) {
                x += series.x[i];
                y += series.y[i];
                ++count;
            }
        if (count > 0)
            result.add(x / static_cast<double>(count), y / static_cast<double>(count));
        else if (lies_in(range, series.x[begin]))
            result.add(series.x[begin], series.y[begin]);
    }
    return result;
}

std::optional<std::size_t> nearest_point(const Series& series, double x) {
    if (series.size() == 0)
        return std::nullopt;
    const auto after = static_cast<std::size_t>(
        std::lower_bound(series.x.begin(), series.x.end(), x) - series.x.begin());
    if (after == 0)
        return 0;
    if (after == series.size() || x - series.x[after - 1] <= series.x[after] - x)
        return after - 1;
    return after;
}

}  // namespace hetseq
