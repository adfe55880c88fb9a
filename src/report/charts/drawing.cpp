#include "drawing.hpp"

#include "hetseq/report/charts/markup.hpp"

namespace hetseq::detail {

namespace {

std::string quoted(double value) {
    return "\"" + coordinate(value) + "\"";
}

std::string entry(const std::string& key, const std::string& label) {
    return "<span class=\"entry\">" + key + escaped(label) + "</span>\n";
}

}  // namespace

std::string color_class(int color) {
    return "c" + std::to_string(color % palette_size);
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
    return "<text x=" + quoted(x) + " y=" + quoted(y) + " text-anchor=\"" + anchor + "\">" +
           escaped(text) + "</text>\n";
}

std::string rectangle(double x,
                      double y,
                      double width,
                      double height,
                      const std::string& attributes,
                      const std::string& title) {
    return "<rect x=" + quoted(x) + " y=" + quoted(y) + " width=" + quoted(width) +
           " height=" + quoted(height) + " " + attributes + "><title>" + escaped(title) +
           "</title></rect>\n";
}

std::string legend_line(int color, bool dashed, const std::string& label) {
    return entry("<svg class=\"key\" viewBox=\"0 0 26 10\"><path class=\"curve " +
                     color_class(color) + (dashed ? " dashed" : "") + "\" d=\"M0 5H26\"/></svg>",
                 label);
}

std::string legend_box(int color, const std::string& label) {
    return entry("<svg class=\"box\" viewBox=\"0 0 10 10\"><rect class=\"" + color_class(color) +
                     "\" width=\"10\" height=\"10\"/></svg>",
                 label);
}

std::string figure(const std::string& title,
                   const std::string& unit,
                   const std::string& legend,
                   double height,
                   const std::string& drawing) {
    return "<figure>\n<figcaption>" + escaped(title) +
           (unit.empty() ? "" : " <small>" + escaped(unit) + "</small>") + "</figcaption>\n" +
           (legend.empty() ? "" : "<div class=\"legend\">" + legend + "</div>\n") +
           "<svg class=\"chart\" viewBox=\"0 0 " + coordinate(chart_width) + " " +
           coordinate(height) + "\" role=\"img\" aria-label=\"" + escaped(title) + "\">\n" +
           drawing + "</svg>\n</figure>\n";
}

}  // namespace hetseq::detail
