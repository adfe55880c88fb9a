#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/report/charts/markup.hpp"

#include "report/charts/drawing.hpp"
#include "sections.hpp"

namespace hetseq::detail {

namespace {

// A row of the table: its name, and the entry for a run (which may be empty).
struct Row {
    std::string name;
    std::function<std::string(const RunRecord&)> value;
};

std::string option(const RunRecord& run, const std::string& name) {
    const auto found = run.options.find(name);
    return found == run.options.end() ? "" : found->second;
}

std::function<std::string(const RunRecord&)> summary_number(const std::string& key) {
    return [=](const RunRecord& run) {
        const auto value = run.summary ? run.summary->number(key) : std::nullopt;
        return value ? format_number(*value, 4) : std::string();
    };
}

std::function<std::string(const RunRecord&)> summary_percent(const std::string& key) {
    return [=](const RunRecord& run) {
        const auto value = run.summary ? run.summary->number(key) : std::nullopt;
        return value ? percent_text(*value, 4) : std::string();
    };
}

// Summaries of earlier versions have shares above 1.
std::string share_of_bound(const RunRecord& run) {
    const auto value = run.summary ? run.summary->number("balance.achieved") : std::nullopt;
    return value ? percent_text(std::min(*value, 1.0), 4) : std::string();
}

std::string status(const RunRecord& run) {
    return run.summary ? run.summary->status : "no summary.json";
}

std::string step_time(const RunRecord& run) {
    if (!run.summary || !run.summary->number("step_ms.median"))
        return run.metrics.step_ms > 0 ? format_number(run.metrics.step_ms, 4) + " ms (mean)" : "";
    return format_number(*run.summary->number("step_ms.median"), 4) + " ms (" +
           format_number(run.summary->number("step_ms.p10").value_or(0), 4) + " to " +
           format_number(run.summary->number("step_ms.p90").value_or(0), 4) + ")";
}

std::string duration(const RunRecord& run) {
    const auto seconds = run.summary ? run.summary->number("seconds") : std::nullopt;
    return seconds ? format_duration(*seconds) : "";
}

// The lowest validation loss.
std::string best_loss(const RunRecord& run) {
    const auto losses = run.metrics.valid.find("loss");
    const auto range =
        losses == run.metrics.valid.end() ? std::nullopt : finite_range(losses->second.y);
    return range ? format_number(range->low, 5) : "";
}

std::string metric_text(const Series& series) {
    const double last = series.y.back();
    return is_share(series) ? percent_text(last, 4) : format_number(last, 4);
}

std::string last_metrics(const RunRecord& run) {
    std::string text;
    for (const auto& [key, series] : run.metrics.valid)
        if (key != "seconds" && run.metrics.train.count(key) == 0 && series.size() > 0)
            text += (text.empty() ? "" : ", ") + key + " " + metric_text(series);
    return text;
}

std::string workers_text(const RunRecord& run) {
    std::vector<std::string> texts;
    for (const RunSummary::Worker& worker :
         run.summary ? run.summary->workers : std::vector<RunSummary::Worker>()) {
        std::string text = count_text(static_cast<std::int64_t>(worker.stages), "stage") +
                           ": forward and backward " + format_number(worker.ms, 3) + " ms";
        const bool is_planned = worker.planned_ms > 0;
        if (is_planned)
            text += " (planned: " + format_number(worker.planned_ms, 3) + ")";
        text += ", stages wait " + percent_text(worker.bubble, 2);
        if (is_planned)
            text += " (planned: " + percent_text(worker.planned_bubble, 2) + ")";
        texts.push_back(std::move(text));
    }
    return join(texts, "; ");
}

// The first ones.
std::string layouts_text(const RunRecord& run) {
    constexpr std::size_t most = 4;
    std::vector<std::string> texts;
    for (const RunSummary::Layout& layout :
         run.summary ? run.summary->layouts : std::vector<RunSummary::Layout>())
        if (texts.size() < most)
            texts.push_back(layout.name + (layout.fits
                                               ? " " + format_number(layout.planned_ms, 3) + " ms"
                                               : " does not fit"));
    return join(texts, "; ");
}

const std::vector<Row>& rows() {
    static const std::vector<Row> table{
        {"status", status},
        {"task", [](const RunRecord& run) { return option(run, "task"); }},
        {"global batch",
         [](const RunRecord& run) {
             const std::string tokens = option(run, "batch-tokens");
             return tokens.empty() || tokens == "0" ? option(run, "batch-size")
                                                    : tokens + " tokens";
         }},
        {"ranks",
         [](const RunRecord& run) {
             const std::size_t ranks =
                 run.summary ? run.summary->ranks.size() : run.metrics.compute_ms.size();
             return ranks > 0 ? std::to_string(ranks) : std::string();
         }},
        {"balance",
         [](const RunRecord& run) {
             return run.summary ? run.summary->policy : option(run, "balance");
         }},
        {"depends on the cut",
         [](const RunRecord& run) {
             return run.summary && !run.summary->is_exact ? "yes (exact = False)" : "";
         }},
        {"updates",
         [](const RunRecord& run) {
             return std::to_string(run.metrics.last_update) +
                    (run.metrics.epoch > 0 ? ", in epoch " + format_number(run.metrics.epoch, 9)
                                           : "");
         }},
        {"duration", duration},
        {"samples/s", summary_number("samples_per_second")},
        {"tokens/s",
         [](const RunRecord& run) {
             return run.summary && run.summary->unit == "tokens"
                        ? summary_number("units_per_second")(run)
                        : "";
         }},
        {"padding",
         [](const RunRecord& run) {
             return run.summary && run.summary->number("padding").value_or(0) > 0
                        ? summary_percent("padding")(run)
                        : "";
         }},
        {"time of an update", step_time},
        {"of the bound", share_of_bound},
        {"layouts, as planned", layouts_text},
        {"virtual workers", workers_text},
        {"lost to communication", summary_percent("balance.communication_share")},
        {"reallocations", summary_number("balance.reallocations")},
        {"skipped updates", summary_number("skipped")},
        {"best validation loss", best_loss},
        {"last validation", last_metrics}};
    return table;
}

std::string table_row(const Row& row, std::span<const RunRecord> runs) {
    std::string cells;
    bool filled = false;
    for (const RunRecord& run : runs) {
        const std::string value = row.value(run);
        filled = filled || !value.empty();
        cells += "<td>" + escaped(value) + "</td>";
    }
    return filled ? "<tr><th scope=\"row\">" + row.name + "</th>" + cells + "</tr>\n" : "";
}

// Sentences of each run as a list, its name before them where there are several.
std::string sentences(std::span<const RunRecord> runs,
                      const char* style_class,
                      const std::function<std::vector<std::string>(const RunRecord&)>& of) {
    std::string items;
    for (const RunRecord& run : runs)
        for (const std::string& sentence : of(run))
            items += "<li>" + (runs.size() > 1 ? escaped(run.name) + ": " : "") +
                     escaped(sentence) + "</li>\n";
    return items.empty() ? ""
                         : std::string("<ul class=\"") + style_class + "\">\n" + items + "</ul>\n";
}

}  // namespace

std::string overview(std::span<const RunRecord> runs) {
    std::string head;
    for (std::size_t i = 0; i < runs.size(); ++i)
        head += "<th scope=\"col\">" + legend_box(static_cast<int>(i), runs[i].name) + "</th>";
    std::string table = "<tr><td></td>" + head + "</tr>\n";
    for (const Row& row : rows())
        table += table_row(row, runs);
    return "<div class=\"wide\"><table>\n" + table + "</table></div>\n" +
           sentences(runs, "note", [](const RunRecord& run) { return run.missing; }) +
           sentences(runs, "advice", [](const RunRecord& run) {
               return run.summary ? run.summary->advice : std::vector<std::string>();
           });
}

}  // namespace hetseq::detail
