#include <algorithm>
#include <cmath>
#include <span>

#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/train/record/advice.hpp"
#include "hetseq/train/record/summary.hpp"
#include "hetseq/train/trainer.hpp"

namespace hetseq {

namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr double least_told = 0.005;  // of the time of all starts

// "min / avg / max"
std::string range_text(const Summary::Range& range) {
    return format_number(range.min, 3) + " / " + format_number(range.avg, 3) + " / " +
           format_number(range.max, 3);
}

std::string class_table(const Summary& summary) {
    Rows rows{{"ms an update: min / avg / max", "ranks", summary.unit}};
    for (const RankTimeText& text : rank_time_texts)
        rows.front().emplace_back(text.heading);
    for (const Summary::Class& one : summary.classes()) {
        const double work = static_cast<double>(one.units) * summary.reported_units;
        rows.push_back({one.name, std::to_string(one.ranks), std::to_string(std::llround(work))});
        for (const RankTimeText& text : rank_time_texts)
            rows.back().push_back(range_text(one.ms[text.time]));
    }
    return format_table(rows);
}

// The costs behind the bound were measured in other updates than those that it is compared with.
std::string beyond_bound(const Summary& summary) {
    const double less = 1 - summary.step_ms.median / *summary.bound_ms;
    return less > 0 ? " (updates took " + percent_text(less, 2) +
                          " less time than it; it rests on speeds measured in others)"
                    : "";
}

std::string balance_text(const Summary& summary) {
    if (!summary.bound_ms)
        return "";
    return "balance " + summary.policy + " [ms per update]: equal split " +
           format_number(*summary.equal_ms, 3) + ", in proportion to the rates " +
           format_number(*summary.proportional_ms, 3) + ", as cut " +
           format_number(*summary.predicted_ms, 3) + ", bound " +
           format_number(*summary.bound_ms, 3) + "; measured " +
           format_number(summary.step_ms.median, 3) + "\n" + percent_text(*summary.achieved()) +
           " of the bound reached" + beyond_bound(summary) + ", communication took " +
           percent_text(summary.communication_share(), 2) + " of an update\n";
}

// A pipeline, and its stages.
std::string worker_text(const Summary& summary, std::size_t number) {
    const Summary::Worker& worker = summary.workers[number];
    Rows rows{{"stage", "rank", "units", "in flight", "sent [MiB]", "planned [MiB]", "peak [MiB]"}};
    for (const int of_stage : worker.ranks) {
        const Summary::Rank& rank = summary.ranks.at(static_cast<std::size_t>(of_stage));
        rows.push_back(
            {std::to_string(rank.stage->number),
             std::to_string(rank.rank),
             std::to_string(rank.stage->units),
             std::to_string(rank.stage->in_flight),
             format_number(rank.stage->sent_mb, 3),
             rank.stage->planned_mb > 0 ? std::to_string(std::llround(rank.stage->planned_mb))
                                        : "-",
             rank.is_gpu ? "the host's" : std::to_string(std::llround(rank.peak_memory_mb))});
    }
    const std::string name =
        summary.workers.size() > 1 ? "virtual worker " + std::to_string(number) + ", " : "";
    std::string text = name + "pipeline of " + count_text(std::ssize(worker.ranks), "stage") + ": ";
    if (worker.ms > 0)
        text += "they computed nothing in " + percent_text(summary.bubble(worker), 2) +
                " of an update's time; forward and backward took " + format_number(worker.ms, 3) +
                " ms";
    else
        text += "no update was timed";
    if (worker.planned_ms > 0)
        text += " (planned: " + format_number(worker.planned_ms, 3) + ", of which stages wait " +
                percent_text(worker.planned_bubble, 2) + ")";
    return text + "\n" + format_table(rows);
}

std::string goodput_text(const Goodput& goodput) {
    const double all_s = goodput.seconds();
    std::string text = "over " + count_text(static_cast<std::int64_t>(goodput.starts), "start");
    if (goodput.failures > 0)
        text += ", " + std::to_string(goodput.failures) + " of which failed";
    text += ": " + percent_text(goodput.share(), 3) + " of " + format_duration(all_s) + " " +
            std::string(goodput_parts[0].words);
    for (const GoodputPart& part : std::span(goodput_parts).subspan(1))
        if (goodput.*part.seconds >= least_told * all_s)
            text += ", " + percent_text(goodput.*part.seconds / all_s, 2) + " " +
                    std::string(part.words);
    return text;
}

}  // namespace

std::string Summary::workers_text() const {
    std::string text;
    if (!layouts.empty())
        text = "layout: " + layouts.front().name + "; an update was planned to take " +
               format_number(layouts.front().update_ms, 3) + " ms and took " +
               format_number(step_ms.median, 3) + "\n";
    for (std::size_t number = 0; number < workers.size(); ++number)
        text += worker_text(*this, number);
    return text;
}

std::string Summary::text(const TrainerReport& report) const {
    std::string text = status + ": " + count_text(report.updates, "update") + ", " +
                       count_text(report.epochs, "epoch") + ", " + format_duration(seconds) +
                       " (first update after " + format_number(startup_s, 3) + " s)\n" +
                       format_number(units_per_second) + " " + unit + "/s, " +
                       (padding > 0 ? "padding " + percent_text(padding, 2) + ", " : "") + "step " +
                       format_number(step_ms.median, 3) + " ms (" + format_number(step_ms.p10, 3) +
                       " to " + format_number(step_ms.p90, 3) + ")\n" + balance_text(*this) +
                       class_table(*this) + workers_text();
    if (report.goodput && report.goodput->starts > 1)
        text += goodput_text(*report.goodput) + "\n";
    if (!is_exact)
        text += "another cut of the batches would give another result (exact = False)\n";
    for (const std::string& line : advice(*this))
        text += line + "\n";
    return text;
}

}  // namespace hetseq
