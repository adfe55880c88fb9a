#include "axes.hpp"

#include "hetseq/report/charts/markup.hpp"

#include "drawing.hpp"

namespace hetseq::detail {

namespace {

constexpr double left_margin = 54, right_margin = 20, top_margin = 10, bottom_margin = 38;
constexpr double text_drop = 4;  // from a line's middle to its text's base

}  // namespace

double Axes::left() const noexcept {
    return left_margin;
}

double Axes::top() const noexcept {
    return top_margin;
}

double Axes::width() const noexcept {
    return chart_width - left_margin - right_margin;
}

double Axes::height() const noexcept {
    return height_ - top_margin - bottom_margin;
}

std::string Axes::draw(const std::string& x_name) const {
    const double right = left() + width(), bottom = top() + height();
    std::string grid, labels;
    for (const double tick : y_.ticks()) {
        grid += "M" + coordinate(left()) + " " + coordinate(y(tick)) + "H" + coordinate(right);
        labels += text_at(left() - 6, y(tick) + text_drop, "end", tick_label(tick));
    }
    std::string marks;
    for (const double tick : x_.ticks()) {
        marks += "M" + coordinate(x(tick)) + " " + coordinate(bottom) + "v4";
        labels += text_at(x(tick), bottom + 17, "middle", tick_label(tick));
    }
    labels += text_at(left() + width() / 2, bottom + 33, "middle", x_name);
    return "<path class=\"lines\" d=\"" + grid + "\"/>\n<path class=\"mark\" d=\"M" +
           coordinate(left()) + " " + coordinate(bottom) + "H" + coordinate(right) + marks +
           "\"/>\n" + labels;
}

}  // namespace hetseq::detail
