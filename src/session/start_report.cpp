#include "hetseq/session/start_report.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hetseq/util/text.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/session/group_shares.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

// What the table of a start shows of all ranks.
struct ShareTable {
    const RunSettings& settings;
    SharePlan& shares;
    std::int64_t full;                  // batch
    std::vector<std::int64_t> of_full;  // by rank
    bool is_measured;
    bool recomputes;
    double units_of_cost;  // what is reported of the allocated ones

    std::vector<std::string> heading() const;
    std::vector<std::string> row(const RankInfo& info) const;
};

std::vector<std::string> ShareTable::heading() const {
    const std::string unit = shares.ragged() ? shares.ragged()->unit : "samples";
    const std::string padded = settings.is_ragged() ? " (tokens with padding)" : "";
    std::vector<std::string> cells{"rank",
                                   "host",
                                   "device",
                                   "threads",
                                   "precision",
                                   "capacity" + padded,
                                   "share (" + unit + ")",
                                   "of the batch"};
    if (recomputes)
        cells.push_back("recompute");
    if (is_measured)
        cells.insert(cells.end(), {unit + "/s", "ms"});
    return cells;
}

std::vector<std::string> ShareTable::row(const RankInfo& info) const {
    const auto own = static_cast<std::size_t>(info.rank);
    const auto r = static_cast<std::size_t>(shares.leader_of(info.rank));
    const std::int64_t share = of_full[r];
    const auto& cost = shares.costs()[r];
    const double part = 100 * static_cast<double>(share) / static_cast<double>(full);
    std::vector<std::string> cells{
        std::to_string(info.rank),
        info.host,
        info.device_name,
        std::to_string(settings.threads[own]),
        to_string(settings.precisions[own]),
        std::to_string(settings.is_ragged() ? settings.capacities[own] : cost.micro_batch),
        std::to_string(std::llround(static_cast<double>(share) * units_of_cost)),
        format_number(part, 3) + " %"};
    if (recomputes)
        cells.push_back(choice_text(settings.recompute[own]));
    if (is_measured)
        cells.insert(cells.end(),
                     {format_number(1000 * units_of_cost * cost.rate(), 4),
                      format_number(cost.time_ms(share), 4)});
    return cells;
}

std::string shard_words_of(const Options& options) {
    if (options.shard == "none")
        return "";
    const std::string by = options.shard_by.text();
    return ", the optimizer's state is cut " + (by == "even" ? "evenly" : "by " + by);
}

}  // namespace

std::string start_report(const RunSettings& settings, SharePlan& shares, const BatchPlan& plan) {
    const ShareTable table{
        settings,
        shares,
        shares.full_batch(plan),
        shares_of_full_batch(shares, plan),
        shares.policy() == "auto" && settings.topology.ranks.size() > 1,
        std::any_of(settings.recompute.begin(),
                    settings.recompute.end(),
                    [](const RecomputeChoice& choice) { return choice.has_value(); }),
        shares.ragged() ? shares.ragged()->reported_units : 1};
    std::vector<std::vector<std::string>> rows{table.heading()};
    for (const RankInfo& info : settings.topology.ranks)
        rows.push_back(table.row(info));
    const Options& options = settings.options();
    return settings.topology.table() + "global batch " +
           (options.batch_tokens > 0 ? std::to_string(options.batch_tokens) + " tokens"
                                     : std::to_string(options.batch_size)) +
           ", balance " + options.balance.policy +
           (sent_type(settings) ? ", gradients are sent in bf16" : "") + shard_words_of(options) +
           "\n" + group_report(shares, plan) + format_table(rows);
}

}  // namespace hetseq
