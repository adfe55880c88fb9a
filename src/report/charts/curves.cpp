#include <algorithm>
#include <set>
#include <utility>

#include "hetseq/report/charts/line_chart.hpp"

#include "report/sections.hpp"

namespace hetseq::detail {

namespace {

// The source of one key's values.
enum class Source { train, valid };

const Series* find(const RunRecord& run, Source source, const std::string& key) {
    const auto& series = source == Source::train ? run.metrics.train : run.metrics.valid;
    const auto found = series.find(key);
    return found == series.end() ? nullptr : &found->second;
}

// "training" or "validation"; with several runs, the run's name stands before it.
std::string label(const RunRecord& run, std::size_t runs, Source source, bool both) {
    const std::string kind = source == Source::train ? "training" : "validation";
    if (runs == 1)
        return kind;
    return both ? run.name + ", " + kind : run.name;
}

// Each run has its own colour where there are several.
int color(std::size_t run, std::size_t runs, Source source) {
    return static_cast<int>(runs == 1 && source == Source::valid ? 1 : run);
}

// In percent, as the tables show it, where it is a share in all runs.
void show_as_share(LineChart& chart) {
    for (const Curve& curve : chart.curves)
        if (!is_share(curve.points))
            return;
    chart.unit = "%";
    for (Curve& curve : chart.curves)
        for (double& value : curve.points.y)
            value *= 100;
}

// With the curves of `key` of all runs.
LineChart filled(LineChart chart, std::span<const RunRecord> runs, const std::string& key) {
    bool in_train = false, in_valid = false;
    for (const RunRecord& run : runs) {
        in_train = in_train || find(run, Source::train, key) != nullptr;
        in_valid = in_valid || find(run, Source::valid, key) != nullptr;
    }
    for (std::size_t i = 0; i < runs.size(); ++i)
        for (const Source source : {Source::train, Source::valid})
            if (const Series* series = find(runs[i], source, key))
                chart.curves.push_back({label(runs[i], runs.size(), source, in_train && in_valid),
                                        color(i, runs.size(), source),
                                        source == Source::valid ? Stroke::dashed : Stroke::solid,
                                        *series});
    return chart;
}

// One figure of `key` of all runs.
std::string draw(std::span<const RunRecord> runs, LineChart chart, const std::string& key) {
    return line_chart(filled(std::move(chart), runs, key));
}

std::string draw_metric(std::span<const RunRecord> runs, const std::string& metric) {
    LineChart chart =
        filled({.title = "Validation: " + metric, .may_be_logarithmic = false}, runs, metric);
    show_as_share(chart);
    return line_chart(chart);
}

// In the unit that the runs count their batches in, if it is one.
std::string draw_rate(std::span<const RunRecord> runs) {
    const bool counts_tokens = std::all_of(runs.begin(), runs.end(), [](const RunRecord& run) {
        return run.summary && run.summary->unit == "tokens";
    });
    return counts_tokens ? draw(runs,
                                {.title = "Rate", .unit = "tokens/s", .from_zero = true},
                                "units_per_second")
                         : draw(runs,
                                {.title = "Rate", .unit = "samples/s", .from_zero = true},
                                "samples_per_second");
}

// The keys of a task's own losses and metrics: those of `source` without the keys that every run
// has.
std::set<std::string> own_keys(std::span<const RunRecord> runs, Source source) {
    static const std::set<std::string> common{
        "loss", "lr", "grad_norm", "samples_per_second", "units_per_second", "step_ms", "seconds"};
    std::set<std::string> keys;
    for (const RunRecord& run : runs)
        for (const auto& [key, series] :
             source == Source::train ? run.metrics.train : run.metrics.valid)
            if (common.count(key) == 0)
                keys.insert(key);
    return keys;
}

}  // namespace

std::string curves(std::span<const RunRecord> runs) {
    std::string figures = draw(runs, {.title = "Loss"}, "loss");
    const std::set<std::string> terms = own_keys(runs, Source::train);
    for (const std::string& term : terms)
        if (terms.size() > 1)  // a single term is the loss
            figures += draw(runs, {.title = "Loss: " + term}, term);
    for (const std::string& metric : own_keys(runs, Source::valid))
        if (terms.count(metric) == 0)
            figures += draw_metric(runs, metric);
    figures += draw_rate(runs);
    figures +=
        draw(runs, {.title = "Time of an update", .unit = "ms", .from_zero = true}, "step_ms");
    figures += draw(runs, {.title = "Learning rate", .from_zero = true}, "lr");
    figures += draw(runs,
                    {.title = "Gradient norm", .unit = "before clipping", .from_zero = true},
                    "grad_norm");
    return figures.empty() ? "" : "<h2>Curves</h2>\n<div class=\"grid\">\n" + figures + "</div>\n";
}

}  // namespace hetseq::detail
