#include "hetseq/plan/cluster_fit.hpp"

#include <algorithm>
#include <cmath>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/plan/cluster_plan.hpp"

#include "simplex.hpp"

namespace hetseq {

namespace {

constexpr double first_step = 0.5;     // of a factor's logarithm
constexpr double largest_factor = 12;  // |log|: beyond, a number is as good as 0 or endless
constexpr double probe = 1.1;

std::string meaning_of(FitNumber number) {
    switch (number) {
        case FitNumber::compute:
            return "factor on the described compute times";
        case FitNumber::spread:
            return "coefficient of variation of a rank's step time";
        case FitNumber::intra_latency:
            return "latency of a message within a node [us]";
        case FitNumber::intra_bandwidth:
            return "effective bandwidth within a node [GB/s]";
        case FitNumber::inter_latency:
            return "latency of a message between nodes [us]";
        case FitNumber::inter_bandwidth:
            return "effective bandwidth between nodes [GB/s]: protocol and contention included";
        case FitNumber::inter_update:
            return "fixed cost of an update of more than one node [ms]";
    }
    HETSEQ_ASSERT(false);
}

// The place of a number that is not a factor on times.
double& place_of(Cluster& cluster, FitNumber number) {
    switch (number) {
        case FitNumber::spread:
            return cluster.job.spread;
        case FitNumber::intra_latency:
            return cluster.network.intra.latency_us;
        case FitNumber::intra_bandwidth:
            return cluster.network.intra.bandwidth_gb;
        case FitNumber::inter_latency:
            return cluster.network.inter.latency_us;
        case FitNumber::inter_bandwidth:
            return cluster.network.inter.bandwidth_gb;
        case FitNumber::inter_update:
            return cluster.network.inter_update_ms;
        case FitNumber::compute:
            break;
    }
    HETSEQ_ASSERT(false);
}

double given_value(Cluster cluster, const FitParameter& parameter) {
    return parameter.number == FitNumber::compute ? 1 : place_of(cluster, parameter.number);
}

void multiply(Cluster& cluster, const FitParameter& parameter, double factor) {
    if (parameter.number != FitNumber::compute) {
        place_of(cluster, parameter.number) *= factor;
        return;
    }
    for (std::size_t i = 0; i < cluster.devices.size(); ++i)
        if (!parameter.device || *parameter.device == i)
            cluster.devices[i].cost.scale *= factor;
}

// With the fit's numbers multiplied by exp(`logs`).
Cluster scaled(const Cluster& cluster, const std::vector<double>& logs) {
    Cluster changed = cluster;
    for (std::size_t i = 0; i < logs.size(); ++i)
        multiply(changed,
                 cluster.fit[i],
                 std::exp(std::clamp(logs[i], -largest_factor, largest_factor)));
    return changed;
}

// The row's own nodes and batch.
Cluster cluster_of(const Cluster& cluster, const MeasuredRow& row) {
    Cluster changed = cluster;
    for (std::size_t i = 0; i < changed.nodes.size(); ++i)
        changed.nodes[i].count = row.nodes[i];
    if (row.batch > 0)
        changed.job.batch = row.batch;
    return changed;
}

double step_ms_of(const Cluster& cluster, const MeasuredRow& row) {
    return plan_update(cluster_of(cluster, row)).times.step_ms;
}

double squared_error(const Cluster& cluster) {
    double sum = 0;
    for (const MeasuredRow& row : cluster.rows)
        if (row.is_fitted)
            sum += std::pow(step_ms_of(cluster, row) / row.step_ms - 1, 2);
    return sum;
}

void check_parameters(const Cluster& cluster) {
    for (const FitParameter& parameter : cluster.fit) {
        const double given = given_value(cluster, parameter);
        if (!(given > 0) || !std::isfinite(given))
            throw BadConfig("'" + parameter.name + "' cannot be fitted",
                            "a fit changes numbers by factors, and this one is " +
                                (given > 0 ? std::string("not given") : std::string("0")),
                            "give a first guess");
    }
}

FittedNumber describe_number(const Cluster& given,
                             const Cluster& fitted,
                             std::size_t i,
                             double log) {
    const FitParameter& parameter = given.fit[i];
    FittedNumber number{parameter.name, meaning_of(parameter.number), 0, 0, 0};
    if (parameter.device)
        number.meaning += " of " + given.devices[*parameter.device].name;
    number.given = given_value(given, parameter);
    number.fitted = number.given * std::exp(std::clamp(log, -largest_factor, largest_factor));
    Cluster changed = fitted;
    multiply(changed, parameter, probe);
    for (const MeasuredRow& row : given.rows)
        if (row.is_fitted)
            number.effect = std::max(
                number.effect, std::abs(step_ms_of(changed, row) / step_ms_of(fitted, row) - 1));
    return number;
}

FittedRow describe_row(const Cluster& fitted, const MeasuredRow& row) {
    const Cluster cluster = cluster_of(fitted, row);
    FittedRow result{row, "", cluster.ranks(), cluster.batch(), 0, 0};
    std::vector<std::string> names;
    for (const NodeClass& node : cluster.nodes)
        if (node.count > 0)
            names.push_back(node.name + " x " + std::to_string(node.count));
    result.nodes = join(names, ", ");
    result.step_ms = plan_update(cluster).times.step_ms;
    result.residual = result.step_ms / row.step_ms - 1;
    return result;
}

std::optional<double> mean_error(const std::vector<FittedRow>& rows, bool is_fitted) {
    double sum = 0;
    int count = 0;
    for (const FittedRow& row : rows)
        if (row.row.is_fitted == is_fitted) {
            sum += row.residual * row.residual;
            ++count;
        }
    return count > 0 ? std::optional(std::sqrt(sum / count)) : std::nullopt;
}

}  // namespace

ClusterFit fit_cluster(const Cluster& cluster) {
    check_parameters(cluster);
    const std::vector<double> logs = minimise(
        [&](const std::vector<double>& point) { return squared_error(scaled(cluster, point)); },
        std::vector<double>(cluster.fit.size(), 0.0),
        first_step);
    ClusterFit fit{scaled(cluster, logs), {}, {}, {}, {}};
    for (std::size_t i = 0; i < cluster.fit.size(); ++i)
        fit.numbers.push_back(describe_number(cluster, fit.cluster, i, logs[i]));
    for (const MeasuredRow& row : cluster.rows)
        fit.rows.push_back(describe_row(fit.cluster, row));
    fit.fitted_error = mean_error(fit.rows, true);
    fit.predicted_error = mean_error(fit.rows, false);
    return fit;
}

}  // namespace hetseq
