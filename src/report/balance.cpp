#include <algorithm>
#include <set>

#include "hetseq/util/text.hpp"
#include "hetseq/report/charts/allocation_chart.hpp"
#include "hetseq/report/charts/bar_chart.hpp"

#include "sections.hpp"

namespace hetseq::detail {

namespace {

constexpr int other_color = 5;
constexpr const char* all_else = "all else";

struct UpdatePhase {
    RankTime time;
    int color;
    std::string name;
};

// The times that follow each other in an update.
const std::vector<UpdatePhase>& phases() {
    static const std::vector<UpdatePhase> table = [] {
        std::vector<UpdatePhase> phases;
        for (const RankTimeText& text : rank_time_texts)
            if (!text.overlaps)
                phases.push_back({text.time,
                                  static_cast<int>(phases.size()) % other_color,
                                  std::string(text.meaning)});
        return phases;
    }();
    return table;
}

constexpr double least_rest_ms = 1e-6;  // less is what rounding leaves

std::string ms(double value) {
    return format_number(value, 4) + " ms";
}

// A bar of the phases and of the rest of the update.
Bar phase_bar(std::size_t rank, const std::string& label, const RankTimes& times, double step_ms) {
    Bar bar{label, {}, std::to_string(rank)};
    for (const UpdatePhase& phase : phases())
        if (const auto& value = times[phase.time])
            bar.parts.push_back({*value, phase.color, phase.name + ": " + ms(*value)});
    const double rest = step_ms - bar.length();
    if (rest > least_rest_ms)
        bar.parts.push_back({rest, other_color, all_else + (": " + ms(rest))});
    return bar;
}

std::vector<Bar> phase_bars(const RunRecord& run) {
    std::vector<Bar> bars;
    if (run.summary && !run.summary->ranks.empty()) {
        const double step = run.summary->number("step_ms.median").value_or(0);
        for (const RunSummary::Rank& rank : run.summary->ranks)
            bars.push_back(phase_bar(bars.size(), rank.name, rank.times, step));
        return bars;
    }
    for (std::size_t r = 0; r < run.metrics.compute_ms.size(); ++r)
        bars.push_back(phase_bar(r,
                                 "rank " + std::to_string(r),
                                 {{RankTime::compute, run.metrics.compute_ms[r]}},
                                 run.metrics.step_ms));
    return bars;
}

// The phases that some bar has.
std::vector<std::pair<int, std::string>> legend_of(const std::vector<Bar>& bars) {
    std::set<int> colors;
    for (const Bar& bar : bars)
        for (const Bar::Part& part : bar.parts)
            colors.insert(part.color);
    std::vector<std::pair<int, std::string>> legend;
    for (const UpdatePhase& phase : phases())
        if (colors.count(phase.color) > 0)
            legend.emplace_back(phase.color, phase.name);
    if (colors.count(other_color) > 0)
        legend.emplace_back(other_color, all_else);
    return legend;
}

std::string title(const RunRecord& run, std::size_t runs, const std::string& text) {
    return runs == 1 ? text : text + ": " + run.name;
}

std::string phase_figures(std::span<const RunRecord> runs) {
    double longest = 0;
    for (const RunRecord& run : runs)
        for (const Bar& bar : phase_bars(run))
            longest = std::max(longest, bar.length());
    std::string figures;
    for (const RunRecord& run : runs)
        figures += bar_chart(
            {.title = title(run, runs.size(), "An update's time by rank"),
             .unit = run.summary && !run.summary->ranks.empty() ? "ms, medians" : "ms, means",
             .legend = legend_of(phase_bars(run)),
             .bars = phase_bars(run),
             .longest = longest});
    return figures;
}

std::string allocation_figures(std::span<const RunRecord> runs) {
    std::string figures;
    for (const RunRecord& run : runs) {
        AllocationChart chart{
            title(run, runs.size(), "Allocation"), run.allocations, run.metrics.last_update, {}};
        if (run.summary)
            for (const RunSummary::Rank& rank : run.summary->ranks)
                chart.ranks.push_back(rank.name);
        if (run.summary && run.summary->unit == "samples")
            chart.unit = "samples";
        figures += allocation_chart(chart);
    }
    return figures;
}

// The measured time of a full batch, and the times that the measured costs predict for other cuts.
std::vector<Bar> bound_bars(const RunSummary& summary) {
    struct Cut {
        const char* key;
        const char* name;
        int color;
    };
    static const std::vector<Cut> cuts{
        {"equal_ms", "equal split, predicted", 5},
        {"proportional_ms", "in proportion to the ranks' rates, predicted", 5},
        {"predicted_ms", "as it was cut last, predicted", 5},
        {"measured_ms", "measured", 0},
        {"bound_ms", "bound (fractions allowed, no communication)", 2}};
    std::vector<Bar> bars;
    for (const Cut& cut : cuts)
        if (const auto value = summary.number(std::string("balance.") + cut.key))
            bars.push_back({cut.name, {{*value, cut.color, ms(*value)}}});
    return bars;
}

std::string bound_figures(std::span<const RunRecord> runs) {
    double longest = 0;
    for (const RunRecord& run : runs)
        for (const Bar& bar : run.summary ? bound_bars(*run.summary) : std::vector<Bar>())
            longest = std::max(longest, bar.length());
    std::string figures;
    for (const RunRecord& run : runs)
        if (run.summary && run.summary->number("balance.bound_ms"))
            figures +=
                bar_chart({.title = title(run, runs.size(), "A full batch against its bound"),
                           .unit = "ms",
                           .bars = bound_bars(*run.summary),
                           .longest = longest});
    return figures;
}

}  // namespace

std::string balance(std::span<const RunRecord> runs) {
    const std::string figures =
        phase_figures(runs) + allocation_figures(runs) + bound_figures(runs);
    return figures.empty() ? "" : "<h2>Ranks</h2>\n<div class=\"grid\">\n" + figures + "</div>\n";
}

}  // namespace hetseq::detail
