#include "dry_run_report.hpp"

#include <cmath>

#include "hetseq/util/json.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

std::string action_text(const DryRunReport& report) {
    if (report.is_finished)
        return report.checkpoint + " is the end of the run: nothing would be done";
    const std::string left = count_text(report.updates - report.done, "update");
    return report.checkpoint.empty()
               ? "would start a run of " + left
               : "would continue from " + report.checkpoint + " (update " +
                     std::to_string(report.done) + " of " + std::to_string(report.updates) + ")";
}

std::string rate_text(const DryRunReport& report) {
    const Spread& step = report.summary.step_ms;
    return format_number(report.summary.units_per_second) + " " + report.summary.unit +
           "/s, step " + format_number(step.median, 3) + " ms (" + format_number(step.p10, 3) +
           " to " + format_number(step.p90, 3) + "), by " + count_text(report.tried, "update") +
           " tried and thrown away\n" + count_text(report.updates - report.done, "update") +
           " left take about " + format_duration(report.seconds_left()) +
           ", without validation and checkpoints\n";
}

std::string whole_mb(double mb) {
    return std::to_string(std::llround(mb)) + " MiB";
}

std::string memory_table(const DryRunReport& report, const Topology& topology) {
    std::vector<std::vector<std::string>> rows{
        {"rank", "host", "memory reckoned", "at its peak", "of"}};
    for (const Summary::Rank& rank : report.summary.ranks)
        rows.push_back({std::to_string(rank.rank),
                        rank.host,
                        whole_mb(sum_of(report.memory[static_cast<std::size_t>(rank.rank)])),
                        whole_mb(rank.peak_memory_mb),
                        rank.is_gpu ? "the host's"
                                    : std::to_string(topology.rank(rank.rank).memory_mb) + " MiB"});
    return format_table(rows);
}

Json rank_json(const Summary::Rank& rank,
               const std::vector<MemoryTerm>& memory,
               const RunSettings& settings) {
    const RankInfo& info = settings.topology.rank(rank.rank);
    const auto r = static_cast<std::size_t>(rank.rank);
    Json json{{"rank", rank.rank},
              {"host", rank.host},
              {"device", rank.device},
              {"precision", to_string(rank.precision)},
              {"recomputed_layers", rank.recomputed_layers},
              {"threads", settings.threads[r]},
              {"capacity", settings.capacities[r]},
              {"share", rank.share}};
    for (const RankTimeText& text : rank_time_texts)
        json[std::string(text.key)] = rank.ms[text.time];
    json["peak_memory_mb"] = rank.peak_memory_mb;
    json["memory_mb"] = info.memory_mb;
    for (const MemoryTerm& term : memory)
        json["memory"][term.name] = term.mb;
    return json;
}

}  // namespace

double DryRunReport::seconds_left() const {
    return static_cast<double>(updates - done) * summary.step_ms.median / 1000;
}

std::string dry_run_text(const DryRunReport& report, const Topology& topology) {
    std::string text = "dry run: everything was checked; " + action_text(report) + "\n";
    if (report.tried > 0)
        text += rate_text(report) + report.summary.workers_text() + memory_table(report, topology);
    return text;
}

std::string dry_run_json(const DryRunReport& report, const RunSettings& settings) {
    const char* action = report.checkpoint.empty() ? "start" : "continue";
    Json json{{"action", report.is_finished ? "nothing" : action},
              {"checkpoint", report.checkpoint.empty() ? Json(nullptr) : Json(report.checkpoint)},
              {"updates_done", report.done},
              {"updates", report.updates},
              {"updates_per_epoch", report.updates_per_epoch},
              {"samples", report.samples},
              {"parameters", report.parameters},
              {"batch_size", settings.options().batch_size},
              {"batch_tokens", settings.options().batch_tokens},
              {"balance", settings.options().balance.policy},
              {"reduce_precision", settings.options().reduce_precision},
              {"tried_updates", report.tried}};
    if (report.tried > 0) {
        const Spread& step = report.summary.step_ms;
        json["step_ms"] = {{"median", step.median}, {"p10", step.p10}, {"p90", step.p90}};
        json["samples_per_second"] = report.summary.samples_per_second;
        json["seconds"] = report.seconds_left();
        if (!report.summary.layouts.empty())
            json["layouts"] = report.summary.layouts_json();
        if (!report.summary.workers.empty())
            json["workers"] = report.summary.workers_json();
        for (const Summary::Rank& rank : report.summary.ranks)
            json["ranks"].push_back(
                rank_json(rank, report.memory[static_cast<std::size_t>(rank.rank)], settings));
    }
    return json_text(json, 2) + "\n";
}

}  // namespace hetseq
