#include "hetseq/report/charts/line_chart.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hetseq/util/text.hpp"
#include "hetseq/report/charts/markup.hpp"

#include "axes.hpp"
#include "drawing.hpp"

namespace hetseq {

namespace {

using detail::Axes;

constexpr double line_chart_height = 240;
constexpr int columns = 370;             // of the plot: one for each unit of its width
constexpr int most_tips = 90;            // places with a tool tip
constexpr double dots_apart = 8;         // points at least so far apart are dots as well
constexpr double logarithmic_from = 50;  // highest over lowest value

Interval united(std::optional<Interval> range, Interval other) {
    if (!range)
        return other;
    return {std::min(range->low, other.low), std::max(range->high, other.high)};
}

Scale value_scale(const LineChart& chart, Interval range) {
    if (chart.may_be_logarithmic && range.low > 0 && range.high > logarithmic_from * range.low)
        return Scale::around(range, Spacing::logarithmic);
    if (chart.from_zero)
        range.low = std::min(range.low, 0.0);
    return Scale::around(range, Spacing::linear);
}

// Points are connected where neither end is a gap. A point between two gaps is a dot.
std::string path_of(const Series& points, const Axes& axes) {
    std::string path;
    bool pen_down = false;
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (!std::isfinite(points.y[i])) {
            pen_down = false;
            continue;
        }
        path += (pen_down ? "L" : "M") + coordinate(axes.x(points.x[i])) + " " +
                coordinate(axes.y(points.y[i])) + (pen_down ? "" : "h0");
        pen_down = true;
    }
    return path;
}

std::string draw_dots(const Curve& curve, const Series& points, const Axes& axes) {
    std::string path;
    for (std::size_t i = 0; i < points.size(); ++i)
        if (std::isfinite(points.y[i]))
            path += "M" + coordinate(axes.x(points.x[i])) + " " + coordinate(axes.y(points.y[i])) +
                    "h0";
    return "<path class=\"dots " + detail::color_class(curve.color) + "\" d=\"" + path + "\"/>\n";
}

std::string draw_path(const Curve& curve,
                      const Series& points,
                      const Axes& axes,
                      const char* kind) {
    return std::string("<path class=\"") + kind + " " + detail::color_class(curve.color) +
           (curve.stroke == Stroke::dashed ? " dashed" : "") + "\" d=\"" + path_of(points, axes) +
           "\"/>\n";
}

// If there are more points than pixels, draws a band from the lowest to the highest, and their
// means.
std::string draw_curve(const Curve& curve, Interval updates, const Axes& axes) {
    const Series points = downsampled(curve.points, updates, columns);
    if (points.size() < curve.points.size())
        return draw_path(curve, points, axes, "band") +
               draw_path(curve, column_means(curve.points, updates, columns), axes, "curve");
    const bool is_sparse = axes.x(curve.points.x.back()) - axes.x(curve.points.x.front()) >=
                           dots_apart * static_cast<double>(points.size() - 1);
    return draw_path(curve, points, axes, "curve") +
           (is_sparse ? draw_dots(curve, points, axes) : "");
}

// The value nearest to `update` of each curve that reaches that far.
std::string tip_text(const LineChart& chart, double update) {
    std::string text;
    double named = update;
    for (const Curve& curve : chart.curves) {
        const auto nearest = nearest_point(curve.points, update);
        if (!nearest || update < curve.points.x.front() || update > curve.points.x.back())
            continue;
        const double at = curve.points.x[*nearest];
        if (text.empty()) {
            named = at;
            text = "update " + format_number(at, 12);
        }
        text += "\n" + curve.label + ": " + format_number(curve.points.y[*nearest], 5) +
                (at == named ? "" : " (update " + format_number(at, 12) + ")");
    }
    return text;
}

// Invisible bands over the plot that carry the tool tips.
std::string draw_tips(const LineChart& chart, Interval updates, const Axes& axes) {
    std::size_t most_points = 1;
    for (const Curve& curve : chart.curves)
        most_points = std::max(most_points, curve.points.size());
    const int count = static_cast<int>(std::min<std::size_t>(most_tips, most_points));
    std::string drawing;
    for (int i = 0; i < count; ++i) {
        // The first and the last band stand for the first and the last point.
        const double at =
            count == 1 ? updates.low : updates.low + (updates.high - updates.low) * i / (count - 1);
        const std::string text = tip_text(chart, at);
        if (!text.empty())
            drawing += detail::rectangle(axes.left() + axes.width() * i / count,
                                         axes.top(),
                                         axes.width() / count,
                                         axes.height(),
                                         "class=\"tip\"",
                                         text);
    }
    return drawing;
}

std::string legend(const LineChart& chart) {
    std::string text;
    for (const Curve& curve : chart.curves)
        text += detail::legend_line(curve.color, curve.stroke == Stroke::dashed, curve.label);
    return chart.curves.size() > 1 ? text : "";
}

}  // namespace

std::string line_chart(const LineChart& chart) {
    std::optional<Interval> updates, values;
    for (const Curve& curve : chart.curves)
        if (const auto range = finite_range(curve.points.y)) {
            values = united(values, *range);
            updates = united(updates, {curve.points.x.front(), curve.points.x.back()});
        }
    if (!values)
        return "";
    const Axes axes(Scale::of_counts(*updates), value_scale(chart, *values), line_chart_height);
    std::string drawing = axes.draw("update");
    for (const Curve& curve : chart.curves)
        if (curve.points.size() > 0)
            drawing += draw_curve(curve, *updates, axes);
    drawing += draw_tips(chart, *updates, axes);
    return detail::figure(chart.title, chart.unit, legend(chart), line_chart_height, drawing);
}

}  // namespace hetseq
