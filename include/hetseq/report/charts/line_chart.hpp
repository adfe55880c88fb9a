#pragma once

#include <string>
#include <vector>

#include "hetseq/report/charts/scale.hpp"
#include "hetseq/report/charts/series.hpp"

namespace hetseq {

enum class Stroke { solid, dashed };

struct Curve {
    std::string label;
    int color = 0;  // of the palette (style.hpp), which repeats
    Stroke stroke = Stroke::solid;
    Series points;  // by update
};

struct LineChart {
    std::string title;
    std::string unit{};  // of the values; may be empty
    std::vector<Curve> curves{};
    bool from_zero = false;          // the axis begins at 0
    bool may_be_logarithmic = true;  // where all values are above 0 and differ much
};

/// An HTML figure: curves over updates, with tool tips that show their values. Empty if no curve
/// has a finite value.
std::string line_chart(const LineChart& chart);

}  // namespace hetseq
