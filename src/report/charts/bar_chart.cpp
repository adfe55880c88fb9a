#include "hetseq/report/charts/bar_chart.hpp"

#include <algorithm>
#include <cmath>

#include "hetseq/util/text.hpp"
#include "hetseq/report/charts/markup.hpp"
#include "hetseq/report/charts/scale.hpp"

#include "drawing.hpp"

namespace hetseq {

namespace {

constexpr std::size_t many = 16;  // more bars than these are thin

// How bars are laid out, in the drawing's coordinates.
struct Layout {
    bool thin = false;
    double left = 6, right = detail::chart_width - 64;  // the value stands behind the bar
    double pitch = 36, thickness = 14, offset = 18;     // from a bar's place to its box

    explicit Layout(std::size_t bars) : thin{bars > many} {
        if (thin) {
            left = 44;
            pitch = 12;
            thickness = 9;
            offset = 1;
        }
    }
};

constexpr double axis_height = 26;
constexpr std::size_t longest_label = 50;  // characters

// By characters, not bytes.
std::string shortened(const std::string& text, std::size_t longest) {
    std::size_t characters = 0, end = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U)
            continue;
        if (++characters == longest)
            end = i;
    }
    return characters > longest ? text.substr(0, end) + "\xE2\x80\xA6" : text;  // an ellipsis
}

std::string draw_bar(const Bar& bar, double y, double scale, const Layout& layout) {
    std::string drawing =
        layout.thin
            ? detail::text_at(layout.left - 5, y + 9.5, "end", bar.short_label)
            : detail::text_at(layout.left, y + 12, "start", shortened(bar.label, longest_label));
    double x = layout.left;
    for (const Bar::Part& part : bar.parts) {
        const double width = std::max(0.0, part.value) * scale;
        if (width > 0)
            drawing += detail::rectangle(x,
                                         y + layout.offset,
                                         width,
                                         layout.thickness,
                                         "class=\"part " + detail::color_class(part.color) + "\"",
                                         bar.label + "\n" + part.title);
        x += width;
    }
    return drawing + detail::text_at(x + 5,
                                     y + layout.offset + layout.thickness / 2 + 4.5,
                                     "start",
                                     format_number(bar.length(), 4));
}

std::string draw_axis(const Scale& scale, double bottom, const Layout& layout) {
    std::string lines, labels;
    for (const double tick : scale.ticks()) {
        const double x = layout.left + (layout.right - layout.left) * scale.position(tick);
        lines += "M" + coordinate(x) + " 0V" + coordinate(bottom + 3);
        labels += detail::text_at(x, bottom + 17, tick == 0 ? "start" : "middle", tick_label(tick));
    }
    return "<path class=\"lines\" d=\"" + lines + "\"/>\n" + labels;
}

}  // namespace

double Bar::length() const {
    double sum = 0;
    for (const Part& part : parts)
        sum += std::max(0.0, part.value);
    return sum;
}

std::string bar_chart(const BarChart& chart) {
    if (chart.bars.empty())
        return "";
    double longest = chart.longest;
    for (const Bar& bar : chart.bars)
        longest = std::max(longest, bar.length());
    if (!(longest > 0) || !std::isfinite(longest))
        longest = 1;
    const Layout layout(chart.bars.size());
    const double bottom = layout.pitch * static_cast<double>(chart.bars.size()) + 2;
    std::string drawing = draw_axis(Scale::of_length(longest), bottom, layout);
    for (std::size_t i = 0; i < chart.bars.size(); ++i)
        drawing += draw_bar(chart.bars[i],
                            layout.pitch * static_cast<double>(i),
                            (layout.right - layout.left) / longest,
                            layout);
    std::string legend;
    for (const auto& [color, name] : chart.legend)
        legend += detail::legend_box(color, name);
    return detail::figure(chart.title, chart.unit, legend, bottom + axis_height, drawing);
}

}  // namespace hetseq
