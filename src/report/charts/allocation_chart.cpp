#include "hetseq/report/charts/allocation_chart.hpp"

#include <algorithm>
#include <numeric>

#include "hetseq/util/quantity.hpp"
#include "hetseq/report/charts/markup.hpp"

#include "axes.hpp"
#include "drawing.hpp"

namespace hetseq {

namespace {

using detail::Axes;

constexpr double allocation_chart_height = 200;
constexpr std::size_t most_boxes = 3000;
constexpr std::size_t legend_at_most = 12;  // ranks

// An allocation and how long it held.
struct Stretch {
    const AllocationFrom* allocation = nullptr;
    std::int64_t begin = 1, end = 1;  // updates; `end` is the next one's first
};

std::int64_t batch_of(const AllocationFrom& allocation) {
    return std::accumulate(allocation.units.begin(), allocation.units.end(), std::int64_t{0});
}

// A stretch that is too short to be drawn is replaced by the next one.
std::vector<Stretch> stretches(const AllocationChart& chart, std::size_t most) {
    const std::int64_t first = chart.allocations.front().update;
    const std::int64_t end = std::max(chart.last_update, chart.allocations.back().update) + 1;
    const auto shortest = static_cast<double>(end - first) / static_cast<double>(most);
    std::vector<Stretch> result;
    for (std::size_t i = 0; i < chart.allocations.size(); ++i) {
        const std::int64_t until =
            i + 1 < chart.allocations.size() ? chart.allocations[i + 1].update : end;
        const AllocationFrom* allocation = &chart.allocations[i];
        if (!result.empty() &&
            static_cast<double>(result.back().end - result.back().begin) < shortest)
            result.back() = {allocation, result.back().begin, until};
        else
            result.push_back({allocation, allocation->update, until});
    }
    return result;
}

std::string rank_name(const AllocationChart& chart, std::size_t rank) {
    return rank < chart.ranks.size() ? chart.ranks[rank] : "rank " + std::to_string(rank);
}

std::string tip_text(const AllocationChart& chart, const Stretch& stretch, std::size_t rank) {
    const std::int64_t units = stretch.allocation->units[rank],
                       batch = batch_of(*stretch.allocation);
    return rank_name(chart, rank) + "\n" + std::to_string(units) + " of " + std::to_string(batch) +
           " " + chart.unit + " (" +
           percent_text(static_cast<double>(units) / static_cast<double>(batch)) + ")\nupdates " +
           std::to_string(stretch.begin) + " to " + std::to_string(stretch.end - 1);
}

std::string draw_stretch(const AllocationChart& chart, const Stretch& stretch, const Axes& axes) {
    std::string drawing;
    const double left = axes.x(static_cast<double>(stretch.begin));
    const double right = axes.x(static_cast<double>(stretch.end));
    double below = 0;
    for (std::size_t r = 0; r < stretch.allocation->units.size(); ++r) {
        const auto units = static_cast<double>(stretch.allocation->units[r]);
        if (units > 0)
            drawing +=
                detail::rectangle(left,
                                  axes.y(below + units),
                                  right - left,
                                  axes.y(below) - axes.y(below + units),
                                  "class=\"part " + detail::color_class(static_cast<int>(r)) + "\"",
                                  tip_text(chart, stretch, r));
        below += units;
    }
    return drawing;
}

}  // namespace

std::string allocation_chart(const AllocationChart& chart) {
    std::size_t ranks = 0;
    std::int64_t batch = 0;
    for (const AllocationFrom& allocation : chart.allocations) {
        ranks = std::max(ranks, allocation.units.size());
        batch = std::max(batch, batch_of(allocation));
    }
    if (batch <= 0)
        return "";
    const auto shown = stretches(chart, std::max<std::size_t>(20, most_boxes / ranks));
    const Axes axes(Scale::of_counts({static_cast<double>(shown.front().begin),
                                      static_cast<double>(shown.back().end)}),
                    Scale::of_length(static_cast<double>(batch), 4),
                    allocation_chart_height);
    std::string drawing = axes.draw("update"), legend;
    for (const Stretch& stretch : shown)
        drawing += draw_stretch(chart, stretch, axes);
    for (std::size_t r = 0; r < ranks && ranks <= legend_at_most; ++r)
        legend += detail::legend_box(static_cast<int>(r), "rank " + std::to_string(r));
    return detail::figure(
        chart.title, chart.unit + " by rank", legend, allocation_chart_height, drawing);
}

}  // namespace hetseq
