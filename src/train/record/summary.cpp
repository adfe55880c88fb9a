#include "hetseq/train/record/summary.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <sys/resource.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/balance/allocate.hpp"
#include "hetseq/state/measured_chain_json.hpp"
#include "hetseq/state/step_cost_file.hpp"
#include "hetseq/state/step_cost_json.hpp"
#include "hetseq/train/record/advice.hpp"
#include "hetseq/train/record/statistics.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/train/trainer.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

double sum(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

// The peak of the host's memory. ru_maxrss counts KiB on Linux.
double peak_memory_mb() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
}

// The costs that rank 0 followed to the end, or those from the ranks' own mean times, which say
// nothing of stages that compute together.
std::vector<StepCost> measured_costs(const HostComm& world,
                                     const TrainerReport& report,
                                     const SharePlan& shares,
                                     const std::vector<Summary::Rank>& ranks) {
    std::vector<std::string> lines;
    for (const StepCost& cost : report.costs)
        lines.push_back(step_cost_json(cost));
    std::vector<StepCost> costs;
    for (const std::string& line : split(world.broadcast(join(lines, "\n"), 0), '\n'))
        costs.push_back(parse_step_cost(line));
    if (!costs.empty())
        return costs;
    const bool is_alone = std::all_of(ranks.begin(), ranks.end(), [&](const Summary::Rank& rank) {
        return shares.leader_of(rank.rank) == rank.rank;
    });
    for (const Summary::Rank& rank : ranks)
        costs.push_back(
            {.unit_ms = rank.unit_ms, .micro_batch = is_alone && rank.unit_ms > 0 ? 1 : 0});
    return costs;
}

std::vector<std::int64_t> working(const std::vector<StepCost>& costs) {
    std::vector<std::int64_t> capacities;
    for (const StepCost& cost : costs)
        capacities.push_back(cost.micro_batch);
    return capacities;
}

// Only the rates, for a cut in proportion to them.
std::vector<StepCost> by_rate(const std::vector<StepCost>& costs) {
    std::vector<StepCost> rates;
    for (const StepCost& cost : costs)
        rates.push_back({.unit_ms = cost.micro_batch > 0 ? 1 / cost.rate() : 0,
                         .micro_batch = cost.micro_batch});
    return rates;
}

// Compares the cut with other cuts of the same batch, by the measured costs.
void compare_with_other_cuts(Summary& summary,
                             const std::vector<StepCost>& costs,
                             const std::vector<std::int64_t>& ours,
                             std::int64_t batch_size) {
    bool is_known = false;
    for (std::size_t r = 0; r < costs.size(); ++r) {
        if (costs[r].micro_batch == 0 && ours[r] > 0)
            return;  // nothing is known of a rank that has work
        is_known = is_known || costs[r].micro_batch > 0;
    }
    if (!is_known)
        return;
    summary.equal_ms = makespan_ms(costs, allocate(equal_costs(working(costs)), batch_size));
    summary.proportional_ms = makespan_ms(costs, allocate(by_rate(costs), batch_size));
    summary.predicted_ms = makespan_ms(costs, ours);
    summary.bound_ms = bound_ms(costs, batch_size);
}

Summary::Range range_over(const std::vector<const Summary::Rank*>& ranks, RankTime time) {
    std::vector<double> values;
    for (const Summary::Rank* rank : ranks)
        values.push_back(rank->ms[time]);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return {*least, sum(values) / static_cast<double>(values.size()), *most};
}

Json range_json(const Summary::Range& range) {
    return {{"min", range.min}, {"avg", range.avg}, {"max", range.max}};
}

Json optional(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json stage_json(const Summary::Stage& stage) {
    return {{"worker", stage.worker},
            {"number", stage.number},
            {"first_unit", stage.first_unit},
            {"units", stage.units},
            {"in_flight", stage.in_flight},
            {"sent_mb", stage.sent_mb},
            {"planned_memory_mb", stage.planned_mb}};
}

Json rank_json(const Summary::Rank& rank, const std::vector<StepCost>& costs) {
    Json json{{"rank", rank.rank},
              {"host", rank.host},
              {"device", rank.device},
              {"precision", to_string(rank.precision)},
              {"recomputed_layers", rank.recomputed_layers},
              {"units", rank.units},
              {"share", rank.share}};
    for (const RankTimeText& text : rank_time_texts)
        json[std::string(text.key)] = rank.ms[text.time];
    json["peak_memory_mb"] = rank.peak_memory_mb;
    if (rank.stage)
        json["stage"] = stage_json(*rank.stage);
    if (std::cmp_less(rank.rank, costs.size()))
        json["cost"] = step_cost_to_json(costs[static_cast<std::size_t>(rank.rank)]);
    return json;
}

Json class_json(const Summary::Class& one) {
    Json json{{"name", one.name}, {"ranks", one.ranks}, {"units", one.units}};
    for (const RankTimeText& text : rank_time_texts)
        json[std::string(text.key)] = range_json(one.ms[text.time]);
    return json;
}

Json slow_rank_json(const SlowRank& one, const std::string& host) {
    return {{"rank", one.rank},
            {"host", host},
            {"speed", one.speed},
            {"update_ms", one.update_ms},
            {"well_ms", one.well_ms},
            {"without_ms", std::isfinite(one.without_ms) ? Json(one.without_ms) : Json(nullptr)}};
}

Json evaluation_json(const Evaluation& evaluation, std::int64_t update) {
    Json json{{"loss", evaluation.loss()}};
    for (const auto& loss : evaluation.losses)
        json[loss.name] = loss.value;
    for (const auto& metric : evaluation.metrics)
        json[metric.name] = metric.value;
    json["update"] = update;
    return json;
}

Json goodput_json(const Goodput& goodput) {
    Json json{{"share", goodput.share()},
              {"seconds", goodput.seconds()},
              {"starts", goodput.starts},
              {"failures", goodput.failures}};
    for (const GoodputPart& part : goodput_parts)
        json[std::string(part.key) + "_s"] = goodput.*part.seconds;
    return json;
}

// The figures of the whole run.
Json run_json(const Summary& summary, const TrainerReport& report) {
    return {{"status", summary.status},
            {"updates", report.updates},
            {"epochs", report.epochs},
            {"samples", report.samples},
            {"units", report.units},
            {"skipped", report.skipped},
            {"overflows", report.loss_scale ? report.loss_scale->overflows : 0},
            {"stopped_by",
             report.stop == StopReason::none ? Json(nullptr) : Json(to_string(report.stop))},
            {"updates_since_start", report.times.updates()},
            {"checkpoint",
             {{"seconds", report.checkpoint_seconds}, {"wait_ms", report.checkpoint_wait_ms}}},
            {"seconds", summary.seconds},
            {"startup_s", summary.startup_s},
            {"samples_per_second", summary.samples_per_second},
            {"units_per_second", summary.units_per_second},
            {"unit", summary.unit},
            {"padding", summary.padding},
            {"exact", summary.is_exact},
            {"reduce_precision", summary.reduce_precision},
            {"shard", summary.shard},
            {"step_ms",
             {{"median", summary.step_ms.median},
              {"p10", summary.step_ms.p10},
              {"p90", summary.step_ms.p90}}},
            {"finish_wait_over_last_bucket", summary.finish_ratio}};
}

Json balance_json(const Summary& summary, std::int64_t reallocations) {
    return {{"policy", summary.policy},
            {"equal_ms", optional(summary.equal_ms)},
            {"proportional_ms", optional(summary.proportional_ms)},
            {"predicted_ms", optional(summary.predicted_ms)},
            {"measured_ms", summary.step_ms.median},
            {"bound_ms", optional(summary.bound_ms)},
            {"achieved", optional(summary.achieved())},
            {"communication_share", summary.communication_share()},
            {"reallocations", reallocations}};
}

}  // namespace

Summary summarise(const HostComm& world,
                  const Topology& topology,
                  const std::vector<Precision>& precisions,
                  SharePlan& shares,
                  std::int64_t batch_size,
                  const TrainerReport& report,
                  double start_seconds) {
    Summary summary;
    const TimeDistributions times = report.times.alike();
    if (!report.is_finished())
        summary.status = "stopped";
    summary.policy = shares.policy();
    summary.step_ms = times.step_ms.spread();
    summary.slow = report.slow;
    summary.seconds = world.all_reduce(monotonic_seconds() - start_seconds, ReduceOp::max);
    summary.startup_s =
        world.all_reduce(report.first_update_seconds - start_seconds, ReduceOp::max);
    summary.samples_per_second = report.times.samples_per_second();
    summary.units_per_second = report.times.units_per_second();
    if (shares.ragged()) {
        summary.unit = shares.ragged()->unit;
        summary.reported_units = shares.ragged()->reported_units;
    }
    const std::int64_t values = world.all_reduce(report.values, ReduceOp::sum);
    const std::int64_t padded = world.all_reduce(report.padded_values, ReduceOp::sum);
    if (values > 0)
        summary.padding = static_cast<double>(padded - values) / static_cast<double>(values);
    summary.finish_ratio = world.all_reduce(report.times.finish_ratio().median(), ReduceOp::max);

    const auto median = [&](const Distribution& values) {
        return world.all_gather(values.median());
    };
    const auto units = world.all_gather(report.times.own_units());
    ByRankTime<std::vector<double>> medians;
    for (const RankTimeText& text : rank_time_texts)
        medians[text.time] = median(times.by_time[text.time]);
    const auto unit_ms = median(times.unit_ms);
    const auto memory = world.all_gather(peak_memory_mb());
    const auto recomputed = world.all_gather(report.recomputed_layers);
    const std::vector<std::int64_t> ours =
        report.full_allocation.empty() ? shares.allocation(batch_size) : report.full_allocation;
    for (int r = 0; r < world.size(); ++r) {
        const auto i = static_cast<std::size_t>(r);
        const RankInfo& info = topology.rank(r);
        Summary::Rank& rank =
            summary.ranks.emplace_back(Summary::Rank{.rank = r,
                                                     .host = info.host,
                                                     .device = info.device_name,
                                                     .is_gpu = info.has_gpu(),
                                                     .precision = precisions[i],
                                                     .recomputed_layers = recomputed[i],
                                                     .units = units[i],
                                                     .share = ours[i],
                                                     .peak_memory_mb = memory[i],
                                                     .unit_ms = unit_ms[i]});
        for (const RankTimeText& text : rank_time_texts)
            rank.ms[text.time] = medians[text.time][i];
    }
    const std::vector<StepCost> costs = measured_costs(world, report, shares, summary.ranks);
    if (shares.policy() != "pipeline")
        compare_with_other_cuts(summary, costs, ours, batch_size);
    return summary;
}

std::vector<Summary::Class> Summary::classes() const {
    std::map<std::string, std::vector<const Rank*>> members;
    for (const Rank& rank : ranks)
        members[(rank.is_gpu ? rank.device : rank.device + " of " + rank.host) +
                narrow_words(rank.precision)]
            .push_back(&rank);
    std::vector<Class> classes;
    for (const auto& [name, own] : members) {
        Class& one = classes.emplace_back();
        one.name = name;
        one.ranks = std::ssize(own);
        for (const Rank* rank : own)
            one.units += rank->units;
        for (const RankTimeText& text : rank_time_texts)
            one.ms[text.time] = range_over(own, text.time);
    }
    return classes;
}

double Summary::bubble(const Worker& worker) const {
    double compute_ms = 0;
    for (const int rank : worker.ranks)
        compute_ms += ranks.at(static_cast<std::size_t>(rank)).ms[RankTime::compute];
    const double all_ms = step_ms.median * static_cast<double>(worker.ranks.size());
    return all_ms > 0 ? std::clamp(1 - compute_ms / all_ms, 0.0, 1.0) : 0;
}

double Summary::communication_share() const {
    double least = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r)
        least = r == 0 ? ranks[r].ms[RankTime::wait] : std::min(least, ranks[r].ms[RankTime::wait]);
    return step_ms.median > 0 ? least / step_ms.median : 0;
}

std::optional<double> Summary::achieved() const {
    if (!bound_ms || step_ms.median <= 0)
        return std::nullopt;
    return std::min(1.0, *bound_ms / step_ms.median);
}

nlohmann::ordered_json Summary::workers_json() const {
    Json json;
    for (const Worker& worker : workers)
        json.push_back({{"ranks", worker.ranks},
                        {"micro_batch", worker.micro_batch},
                        {"planned_ms", worker.planned_ms},
                        {"ms", worker.ms},
                        {"planned_bubble", worker.planned_bubble},
                        {"bubble", bubble(worker)}});
    return json;
}

nlohmann::ordered_json Summary::layouts_json() const {
    Json json;
    for (const ComparedLayout& layout : layouts)
        json.push_back({{"name", layout.name},
                        {"ranks", layout.ranks},
                        {"planned_ms", layout.update_ms},
                        {"compute_ms", layout.compute_ms},
                        {"reduce_ms", layout.reduce_ms},
                        {"memory", layout.memory},
                        {"fits", layout.why_not.empty()},
                        {"why_not", layout.why_not}});
    return json;
}

std::string Summary::json(const TrainerReport& report) const {
    Json json = run_json(*this, report);
    json["balance"] = balance_json(*this, report.reallocations);
    if (!workers.empty())
        json["workers"] = workers_json();
    if (!layouts.empty())
        json["layouts"] = layouts_json();
    if (chain)
        json["chain"] = measured_chain_to_json(*chain);
    for (const SlowRank& one : slow)
        json["slow_ranks"].push_back(slow_rank_json(one, ranks.at(one.rank).host));
    for (const Rank& rank : ranks)
        json["ranks"].push_back(rank_json(rank, report.costs));
    for (const Class& one : classes())
        json["classes"].push_back(class_json(one));
    json["advice"] = advice(*this);
    if (report.goodput)
        json["goodput"] = goodput_json(*report.goodput);
    if (report.last_valid) {
        json["valid"] = evaluation_json(*report.last_valid, report.last_valid_update);
        if (report.best_valid)
            json["valid"]["best"] = evaluation_json(*report.best_valid, report.best_update);
    }
    return json_text(json, 2) + "\n";
}

}  // namespace hetseq
