#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hetseq {

struct Bar {
    struct Part {
        double value = 0;
        int color = 0;
        std::string title;  // the part's tool tip
    };
    std::string label;
    std::vector<Part> parts;    // one after the other from 0 on
    std::string short_label{};  // at most 4 characters

    double length() const;
};

struct BarChart {
    std::string title;
    std::string unit{};
    std::vector<std::pair<int, std::string>> legend{};  // colour, name
    std::vector<Bar> bars{};
    double longest = 0;  // the scale's end, common to charts to compare; 0: the longest bar
};

/// An HTML figure: stacked bars beneath each other, each with its label above it. Many bars are
/// drawn thin, with their short labels (if any) beside them. Empty without bars.
std::string bar_chart(const BarChart& chart);

}  // namespace hetseq
