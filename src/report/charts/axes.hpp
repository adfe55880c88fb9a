#pragma once

#include <string>

#include "hetseq/report/charts/scale.hpp"

namespace hetseq::detail {

/// The frame of a chart over updates: where values lie in its drawing, and its ticks.
class Axes {
public:
    /// `height`: of the whole drawing, labels included.
    Axes(Scale x, Scale y, double height) : x_{std::move(x)}, y_{std::move(y)}, height_{height} {}

    double left() const noexcept;
    double top() const noexcept;
    double width() const noexcept;
    double height() const noexcept;
    double x(double value) const { return left() + width() * x_.position(value); }
    double y(double value) const { return top() + height() * (1 - y_.position(value)); }
    /// Grid lines and labels.
    std::string draw(const std::string& x_name) const;

private:
    Scale x_, y_;
    double height_ = 0;
};

}  // namespace hetseq::detail
