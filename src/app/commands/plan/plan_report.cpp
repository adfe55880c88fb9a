#include "plan_report.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hetseq/util/json.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/plan/all_reduce_time.hpp"
#include "hetseq/plan/cluster_memory.hpp"

#include "layout_report.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

// Published step times are not exact enough for more than a hundredth of a percent.
std::string signed_percent(double fraction) {
    const double hundredths = std::round(1e4 * fraction) / 100;
    return (hundredths >= 0 ? "+" : "") + format_number(hundredths + 0.0, 6) + " %";
}

// Less than a nanosecond is only rounding.
std::string milliseconds(double ms) {
    return format_number(std::abs(ms) < 1e-6 ? 0 : ms, 4);
}

std::string fit_text(const ClusterFit& fit) {
    Rows numbers{{"number", "given", "fitted", "10 % more of it", "meaning"}};
    for (const FittedNumber& number : fit.numbers)
        numbers.push_back({number.name,
                           format_number(number.given),
                           format_number(number.fitted),
                           number.effect < 1e-6 ? "nothing: not determined"
                                                : percent_text(number.effect, 2) + " of a step",
                           number.meaning});
    Rows rows{{"nodes", "ranks", "batch", "measured ms", "model ms", "residual", "use"}};
    for (const FittedRow& row : fit.rows)
        rows.push_back({row.nodes,
                        std::to_string(row.ranks),
                        std::to_string(row.batch),
                        milliseconds(row.row.step_ms),
                        milliseconds(row.step_ms),
                        signed_percent(row.residual),
                        row.row.is_fitted ? "fitted" : "predicted"});
    std::string text =
        (fit.numbers.empty() ? "" : format_table(numbers) + "\n") + format_table(rows);
    if (fit.fitted_error)
        text += "fitted rows: " + percent_text(std::round(1e4 * *fit.fitted_error) / 1e4) +
                " residual (root mean square)\n";
    if (fit.predicted_error)
        text += "predicted rows: " + percent_text(std::round(1e4 * *fit.predicted_error) / 1e4) +
                " residual\n";
    return text + "\n";
}

// How the gradients of a bucket are summed.
struct BucketSum {
    double bytes = 0;
    AllReduceSteps how;
    double ms = 0;
};

// Empty where nothing is reduced.
std::optional<BucketSum> bucket_sum(const Cluster& cluster) {
    const Route route = route_over(cluster);
    const double bytes = std::min(cluster.model.bytes, cluster.model.bucket_mib * bytes_of_mib);
    if (route.ranks <= 1 || bytes <= 0)
        return {};
    const AllReduceAlgorithm algorithm = cluster.network.algorithm;
    return BucketSum{
        bytes, all_reduce_steps(algorithm, route, bytes), all_reduce_ms(algorithm, route, bytes)};
}

std::string bucket_text(const Cluster& cluster) {
    const auto bucket = bucket_sum(cluster);
    if (!bucket)
        return "";
    return "a bucket of " + format_number(bucket->bytes / bytes_of_mib) +
           " MiB: " + bucket->how.scheme + ", " + count_text(bucket->how.steps, "step") + ", " +
           milliseconds(bucket->ms) + " ms\n";
}

std::string head_text(const PlanReport& report) {
    const PlannedUpdate& update = report.plan.update;
    const UpdateTimes& times = update.times;
    std::string text =
        count_text(update.nodes, "node") + ", " + count_text(update.ranks, "rank") + ", batch " +
        count_text(update.batch, "unit") + "\nstep " + milliseconds(times.step_ms) +
        " ms: compute " + milliseconds(times.compute_ms) + ", spread " +
        milliseconds(times.spread_ms) + ", exposed communication " +
        milliseconds(times.exposed_ms) + " (of " + milliseconds(times.reduce_ms) +
        " of reductions), after it " + milliseconds(times.update_ms) + " ms\n" +
        format_number(update.rate) + " units/s, " + percent_text(update.efficiency) +
        " of the bound (" + milliseconds(update.bound_ms) + " ms)\n" + bucket_text(report.cluster);
    if (report.cluster.job.updates > 0)
        text +=
            count_text(report.cluster.job.updates, "update") + " take " +
            format_duration(static_cast<double>(report.cluster.job.updates) * times.step_ms / 1e3) +
            "\n";
    return text;
}

std::string units_text(const NodeClassPlan& plan) {
    const std::string least = std::to_string(plan.least_units);
    return plan.least_units == plan.most_units ? least
                                               : least + " to " + std::to_string(plan.most_units);
}

std::string class_table(const PlanReport& report) {
    Rows rows{{"nodes",
               "count",
               "ranks",
               "units a rank",
               "share",
               "compute ms",
               "idle ms",
               "idle",
               "one more node"}};
    for (const NodeClassPlan& plan : report.plan.classes) {
        const NodeClass& node = report.cluster.nodes[plan.node];
        const bool has_ranks = plan.ranks > 0;
        rows.push_back(
            {node.name,
             std::to_string(node.count),
             std::to_string(plan.ranks),
             has_ranks ? units_text(plan) : "",
             percent_text(plan.share),
             has_ranks ? milliseconds(plan.compute_ms) : "",
             has_ranks ? milliseconds(plan.idle_ms) : "",
             has_ranks ? percent_text(plan.idle_ms / report.plan.update.times.step_ms) : "",
             plan.one_more ? milliseconds(plan.one_more->step_ms) + " ms, " +
                                 signed_percent(plan.one_more->rate / report.plan.update.rate - 1) +
                                 " units/s"
                           : "cannot be planned"});
    }
    return format_table(rows);
}

// Empty where no device says how much memory it has.
std::string planned_memory_text(const Cluster& cluster) {
    Rows rows{{"nodes", "a rank's memory holds", "of MiB", ""}};
    for (const NodeClassMemory& memory : plan_memory(cluster))
        rows.push_back({cluster.nodes[memory.node].name,
                        memory_text(memory.terms),
                        std::to_string(std::llround(memory.has_mib)),
                        memory.fits() ? "" : "does not fit"});
    return rows.size() > 1 ? format_table(rows) + "\n" : "";
}

Json memory_json(const Cluster& cluster) {
    Json json = Json::array();
    for (const NodeClassMemory& memory : plan_memory(cluster)) {
        Json terms;
        for (const MemoryTerm& term : memory.terms)
            terms[term.name] = term.mb;
        json.push_back({{"nodes", cluster.nodes[memory.node].name},
                        {"memory", terms},
                        {"memory_mb", memory.has_mib},
                        {"fits", memory.fits()}});
    }
    return json;
}

std::string advice_text(const PlanReport& report, const NodeClassPlan& plan) {
    const NodeClass& node = report.cluster.nodes[plan.node];
    const std::string most = std::to_string(plan.tried.back().nodes);
    std::string text = node.name + ": ";
    if (plan.still_pays)
        text += "more nodes still pay at " + most + ", the most tried\n";
    else if (plan.best_nodes == 0)
        text += "no node of it pays\n";
    else
        text += "nodes pay up to " + std::to_string(plan.best_nodes) + ", more do not (up to " +
                most + " were tried)\n";
    if (plan.ranks > 0 && plan.units == 0)
        text += node.name + ": its ranks get no work, the others are done before they would be\n";
    return text;
}

Json count_json(const NodeCount& count) {
    return {{"nodes", count.nodes},
            {"step_ms", count.step_ms},
            {"units_per_second", count.rate},
            {"efficiency", count.efficiency}};
}

Json class_json(const PlanReport& report, const NodeClassPlan& plan) {
    const NodeClass& node = report.cluster.nodes[plan.node];
    Json json{{"nodes", node.name},
              {"device", report.cluster.devices[node.device].name},
              {"count", node.count},
              {"ranks", plan.ranks},
              {"units", plan.units},
              {"units_a_rank", {plan.least_units, plan.most_units}},
              {"share", plan.share},
              {"compute_ms", plan.compute_ms},
              {"idle_ms", plan.idle_ms},
              {"one_more", plan.one_more ? count_json(*plan.one_more) : Json(nullptr)},
              {"best_nodes", plan.best_nodes},
              {"still_pays", plan.still_pays}};
    json["tried"] = Json::array();
    for (const NodeCount& count : plan.tried)
        json["tried"].push_back(count_json(count));
    return json;
}

Json fit_json(const ClusterFit& fit) {
    const auto optional = [](const std::optional<double>& value) {
        return value ? Json(*value) : Json(nullptr);
    };
    Json json{{"numbers", Json::array()}, {"rows", Json::array()}};
    for (const FittedNumber& number : fit.numbers)
        json["numbers"].push_back({{"name", number.name},
                                   {"meaning", number.meaning},
                                   {"given", number.given},
                                   {"fitted", number.fitted},
                                   {"effect_of_a_tenth", number.effect}});
    for (const FittedRow& row : fit.rows)
        json["rows"].push_back({{"nodes", row.nodes},
                                {"ranks", row.ranks},
                                {"batch", row.batch},
                                {"use", row.row.is_fitted ? "fit" : "predict"},
                                {"measured_ms", row.row.step_ms},
                                {"model_ms", row.step_ms},
                                {"residual", row.residual}});
    json["fitted_error"] = optional(fit.fitted_error);
    json["predicted_error"] = optional(fit.predicted_error);
    return json;
}

}  // namespace

std::string plan_text(const PlanReport& report) {
    std::string text;
    for (const std::string& sentence : report.taken)
        text += sentence + "\n";
    if (!report.taken.empty())
        text += "\n";
    if (report.fit)
        text += fit_text(*report.fit);
    text +=
        head_text(report) + "\n" + class_table(report) + "\n" + planned_memory_text(report.cluster);
    for (const NodeClassPlan& plan : report.plan.classes)
        text += advice_text(report, plan);
    return text + layouts_text(report.cluster, report.layouts);
}

std::string plan_json(const PlanReport& report) {
    const PlannedUpdate& update = report.plan.update;
    const UpdateTimes& times = update.times;
    Json json{{"nodes", update.nodes},
              {"ranks", update.ranks},
              {"batch", update.batch},
              {"step_ms", times.step_ms},
              {"compute_ms", times.compute_ms},
              {"spread_ms", times.spread_ms},
              {"exposed_ms", times.exposed_ms},
              {"update_ms", times.update_ms},
              {"reduce_ms", times.reduce_ms},
              {"bound_ms", update.bound_ms},
              {"efficiency", update.efficiency},
              {"units_per_second", update.rate},
              {"updates", report.cluster.job.updates},
              {"classes", Json::array()}};
    for (const NodeClassPlan& plan : report.plan.classes)
        json["classes"].push_back(class_json(report, plan));
    const auto bucket = bucket_sum(report.cluster);
    json["bucket"] = bucket ? Json{{"bytes", bucket->bytes},
                                   {"scheme", bucket->how.scheme},
                                   {"steps", bucket->how.steps},
                                   {"ms", bucket->ms}}
                            : Json(nullptr);
    json["memory"] = memory_json(report.cluster);
    json["fit"] = report.fit ? fit_json(*report.fit) : Json(nullptr);
    json["taken"] = report.taken;
    json["layouts"] = layouts_json(report.cluster, report.layouts);
    json["best_layout"] = best_layout_json(report.cluster, report.layouts);
    return json_text(json, 2) + "\n";
}

}  // namespace hetseq
