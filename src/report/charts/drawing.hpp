#pragma once

#include <string>

namespace hetseq::detail {

/// Every chart's width in its own coordinates, which a screen scales to 0.75 to 1.5 times
/// (style.cpp).
constexpr double chart_width = 440;

/// "c0" to "c5": the class that sets a colour of the palette.
std::string color_class(int color);
constexpr int palette_size = 6;

/// A text at (x, y); `anchor` is "start", "middle" or "end".
std::string text_at(double x, double y, const char* anchor, const std::string& text);
std::string rectangle(double x,
                      double y,
                      double width,
                      double height,
                      const std::string& attributes,
                      const std::string& title);

/// An entry of a legend: a piece of the curve or of the bar, and its name.
std::string legend_line(int color, bool dashed, const std::string& label);
std::string legend_box(int color, const std::string& label);

/// <figure> with its caption, legend and drawing.
std::string figure(const std::string& title,
                   const std::string& unit,
                   const std::string& legend,
                   double height,
                   const std::string& drawing);

}  // namespace hetseq::detail
