#include "hetseq/train/summary.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

#include <sys/resource.h>

#include "hetseq/util/text.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/topology.hpp"

#include <nlohmann/json.hpp>

#include "hetseq/balance/allocate.hpp"
#include "hetseq/train/share_plan.hpp"
#include "hetseq/train/statistics.hpp"
#include "hetseq/train/trainer.hpp"

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

// The first updates warm caches and allocators up; they are left out of the steady state.
std::vector<double> steady(const std::vector<double>& values) {
    const std::size_t skipped = std::min<std::size_t>(10, values.size() / 10);
    return {values.begin() + static_cast<std::ptrdiff_t>(skipped), values.end()};
}

double sum(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

// Of the host's memory: ru_maxrss counts KiB on Linux.
double peak_memory_mb() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::vector<StepCost> measured_costs(const std::vector<Summary::Rank>& ranks) {
    std::vector<StepCost> costs;
    for (const Summary::Rank& rank : ranks)
        costs.push_back({.unit_ms = rank.unit_ms, .micro_batch = rank.unit_ms > 0 ? 1 : 0});
    return costs;
}

std::vector<std::int64_t> working(const std::vector<StepCost>& costs) {
    std::vector<std::int64_t> capacities;
    for (const StepCost& cost : costs)
        capacities.push_back(cost.micro_batch);
    return capacities;
}

// What the measured rates say of other cuts of the same batch.
void compare_with_other_cuts(Summary& summary, SharePlan& shares, std::int64_t batch_size) {
    const std::vector<StepCost> costs = measured_costs(summary.ranks);
    const auto works = [](const StepCost& cost) { return cost.micro_batch > 0; };
    if (std::none_of(costs.begin(), costs.end(), works))
        return;
    summary.equal_ms = makespan_ms(costs, allocate(equal_costs(working(costs)), batch_size));
    summary.proportional_ms = makespan_ms(costs, allocate(costs, batch_size));
    summary.predicted_ms = makespan_ms(costs, shares.allocation(batch_size));
    summary.bound_ms = bound_ms(costs, batch_size);
}

Json optional(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
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

}  // namespace

Summary summarise(const HostComm& world,
                  const Topology& topology,
                  SharePlan& shares,
                  std::int64_t batch_size,
                  const TrainerReport& report,
                  double start_seconds) {
    Summary summary;
    const std::vector<double> steps = steady(report.step_ms);
    const double full_batches = static_cast<double>(report.samples) /
                                std::max<double>(1, static_cast<double>(report.updates));
    summary.policy = shares.policy();
    summary.seconds = world.all_reduce(
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count() -
            start_seconds,
        ReduceOp::max);
    summary.startup_s =
        world.all_reduce(report.first_update_seconds - start_seconds, ReduceOp::max);
    summary.samples_per_second =
        steps.empty() ? 0 : 1000 * full_batches * static_cast<double>(steps.size()) / sum(steps);
    summary.units_per_second = summary.samples_per_second;
    summary.finish_ratio = world.all_reduce(spread_of(report.finish_ratio).median, ReduceOp::max);

    const auto units = world.all_gather(report.own_units);
    const auto compute = world.all_gather(spread_of(steady(report.compute_ms)).median);
    const auto wait = world.all_gather(spread_of(steady(report.wait_ms)).median);
    const auto data = world.all_gather(spread_of(steady(report.data_ms)).median);
    const auto memory = world.all_gather(peak_memory_mb());
    for (int r = 0; r < world.size(); ++r) {
        const auto i = static_cast<std::size_t>(r);
        const RankInfo& info = topology.rank(r);
        const double own_share = static_cast<double>(units[i]) /
                                 std::max<double>(1, static_cast<double>(report.updates));
        summary.ranks.push_back({r,
                                 info.host,
                                 info.device_name,
                                 units[i],
                                 compute[i],
                                 wait[i],
                                 data[i],
                                 memory[i],
                                 own_share > 0 ? compute[i] / own_share : 0});
    }
    compare_with_other_cuts(summary, shares, batch_size);
    return summary;
}

std::string Summary::json(const TrainerReport& report) const {
    const Spread step = spread_of(steady(report.step_ms));
    Json json{{"status", status},
              {"updates", report.updates},
              {"epochs", report.epochs},
              {"samples", report.samples},
              {"units", report.units},
              {"skipped", report.skipped},
              {"seconds", seconds},
              {"startup_s", startup_s},
              {"samples_per_second", samples_per_second},
              {"units_per_second", units_per_second},
              {"step_ms", {{"median", step.median}, {"p10", step.p10}, {"p90", step.p90}}},
              {"finish_wait_over_last_bucket", finish_ratio},
              {"balance",
               {{"policy", policy},
                {"equal_ms", optional(equal_ms)},
                {"proportional_ms", optional(proportional_ms)},
                {"predicted_ms", optional(predicted_ms)},
                {"measured_ms", step.median},
                {"bound_ms", optional(bound_ms)}}}};
    for (const Rank& rank : ranks)
        json["ranks"].push_back({{"rank", rank.rank},
                                 {"host", rank.host},
                                 {"device", rank.device},
                                 {"units", rank.units},
                                 {"compute_ms", rank.compute_ms},
                                 {"wait_ms", rank.wait_ms},
                                 {"data_ms", rank.data_ms},
                                 {"peak_memory_mb", rank.peak_memory_mb}});
    if (report.last_valid) {
        json["valid"] = evaluation_json(*report.last_valid, report.updates);
        if (report.best_valid)
            json["valid"]["best"] = evaluation_json(*report.best_valid, report.best_update);
    }
    return json.dump(2) + "\n";
}

std::string Summary::text(const TrainerReport& report) const {
    const Spread step = spread_of(steady(report.step_ms));
    std::string text = status + ": " + std::to_string(report.updates) + " updates, " +
                       std::to_string(report.epochs) + " epochs, " + format_duration(seconds) +
                       " (first update after " + format_number(startup_s, 3) + " s)\n" +
                       format_number(samples_per_second) + " samples/s, step " +
                       format_number(step.median, 3) + " ms (" + format_number(step.p10, 3) +
                       " to " + format_number(step.p90, 3) + ")\n";
    if (bound_ms)
        text += "balance " + policy + ": " + format_number(step.median, 3) + " ms measured, " +
                format_number(*predicted_ms, 3) + " ms by the ranks' own rates, bound " +
                format_number(*bound_ms, 3) + " ms, equal split " + format_number(*equal_ms, 3) +
                " ms\n";
    std::vector<std::vector<std::string>> rows{
        {"rank", "host", "device", "units", "compute ms", "wait ms", "data ms", "memory MB"}};
    for (const Rank& rank : ranks)
        rows.push_back({std::to_string(rank.rank),
                        rank.host,
                        rank.device,
                        std::to_string(rank.units),
                        format_number(rank.compute_ms, 3),
                        format_number(rank.wait_ms, 3),
                        format_number(rank.data_ms, 3),
                        format_number(rank.peak_memory_mb, 4)});
    return text + format_table(rows);
}

}  // namespace hetseq
