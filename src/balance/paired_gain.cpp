#include "hetseq/balance/paired_gain.hpp"

#include <algorithm>
#include <cmath>

namespace hetseq {

namespace {

constexpr double prior_values = 3;

// The slowest rank's.
double time_ms(std::span<const StepCost> costs,
               std::span<const double> unscaled_ms,
               const std::vector<double>& ratios) {
    double slowest = 0;
    for (std::size_t r = 0; r < ratios.size(); ++r)
        if (unscaled_ms[r] > 0)
            slowest = std::max(slowest, costs[r].update_ms + ratios[r] * unscaled_ms[r]);
    return slowest;
}

// By rank, without what comes once in an update.
std::vector<double> unscaled_times_ms(std::span<const StepCost> costs,
                                      std::span<const std::int64_t> allocation) {
    std::vector<double> times;
    for (std::size_t r = 0; r < costs.size(); ++r) {
        StepCost cost = costs[r];
        cost.scale = 1;
        cost.update_ms = 0;
        times.push_back(cost.time_ms(allocation[r]));
    }
    return times;
}

}  // namespace

Estimate estimate(std::span<const double> values, double spread) {
    const auto count = static_cast<double>(values.size());
    double sum = 0;
    for (const double value : values)
        sum += value;
    double squares = prior_values * spread * spread;
    for (const double value : values)
        squares += std::pow(value - sum / count, 2);
    return {sum / count, std::sqrt(squares / (prior_values + count - 1) / count)};
}

std::vector<double> paired_gains(std::span<const std::vector<RatioBlock>> batches,
                                 std::span<const StepCost> costs,
                                 std::span<const std::int64_t> current,
                                 std::span<const std::int64_t> other) {
    const std::vector<double> current_ms = unscaled_times_ms(costs, current);
    const std::vector<double> other_ms = unscaled_times_ms(costs, other);
    std::vector<double> gains;
    for (const std::vector<RatioBlock>& batch : batches) {
        double now = 0, then = 0;
        for (const RatioBlock& block : batch) {
            now += block.updates * time_ms(costs, current_ms, block.ratios);
            then += block.updates * time_ms(costs, other_ms, block.ratios);
        }
        gains.push_back(1 - then / now);
    }
    return gains;
}

}  // namespace hetseq
