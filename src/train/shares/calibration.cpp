#include "hetseq/train/shares/calibration.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/optim/flat_parameters.hpp"

#include "calibrator.hpp"

namespace hetseq {

namespace {

// Sizes that a rank is measured at, ascending; as many for every rank, since all request the same
// number of shares.
constexpr std::int64_t size_divisors[] = {8, 4, 2, 1};

std::int64_t size_at(std::int64_t divisor, std::int64_t capacity, std::int64_t samples) {
    return std::min(samples, (capacity + divisor - 1) / divisor);
}

void request_shares(Loader& loader,
                    const BatchPlan& plan,
                    std::span<const std::int64_t> capacities) {
    const std::int64_t samples = plan.batch(0).size();
    for (const std::int64_t divisor : size_divisors) {
        std::vector<Slice> slices;
        std::int64_t end = 0;
        for (const std::int64_t capacity : capacities) {
            slices.push_back({0, size_at(divisor, capacity, samples)});
            end = std::max(end, slices.back().end);
        }
        loader.request({.begin = 0, .end = end}, slices, {});
    }
}

// The cost with micro-batches of at most `capacity` samples.
StepCost cost_of(const Calibrator& calibrator, std::int64_t capacity) {
    std::vector<StepSample> points;
    for (const Calibrator::Size& size : calibrator.sizes())
        for (const double ms : size.blocks_ms)
            points.push_back(
                {static_cast<double>(calibrator.share(size).samples()), size.micro_batches, ms});
    return fit_step_cost(points,
                         std::min(capacity, calibrator.memory_limit()),
                         std::numeric_limits<std::int64_t>::max());
}

}  // namespace

StepCost calibrate(const HostComm& world,
                   Model& model,
                   FlatParameters& parameters,
                   Loader& loader,
                   const BatchPlan& plan,
                   std::span<const std::int64_t> capacities,
                   const std::optional<StepCost>& known,
                   const CalibrationOptions& options) {
    const std::int64_t capacity = capacities[static_cast<std::size_t>(world.rank())];
    const bool measures = !known && capacity > 0;
    const KeepGenerator keep{parameters.values().device()};
    request_shares(loader, plan, capacities);
    std::vector<LoadedShare> shares = take_shares(world, loader);
    const std::size_t sizes = shares.size();
    Calibrator calibrator{model, parameters, std::move(shares), sizes, options};
    const double rate = agree_on(world, [&] {
        return measures ? calibrator.first_look()
                        : known.value_or(StepCost{.micro_batch = 0}).rate();
    });
    const double rates = world.all_reduce(rate, ReduceOp::sum);
    agree_on(world, [&] {
        if (measures)
            calibrator.measure(static_cast<double>(plan.batch(0).size()) / rates);
    });
    parameters.zero_gradients();
    if (known)
        return *known;
    if (!measures)
        return {.micro_batch = 0};
    StepCost cost = cost_of(calibrator, capacity);
    calibrator.describe(cost, cost.micro_batch);
    return cost;
}

}  // namespace hetseq
