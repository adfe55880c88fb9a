#include "hetseq/train/shares/ragged_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/optim/flat_parameters.hpp"

#include "calibrator.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most_batches = 8;  // whose samples are measured
constexpr double least_improvement = 0.1;

// A size that ranks are measured at: a part of the capacity, and where among the samples, sorted by
// length, its samples lie.
struct MeasuredSize {
    double part = 1;
    double quantile = 0.5;
};
constexpr MeasuredSize ascending_sizes[] = {{0.125}, {0.25}, {0.5}, {1}};
constexpr MeasuredSize other_sizes[] = {{0.9, 0.1}, {0.9, 0.95}};
constexpr double band = 0.1;  // of the samples, around the quantile

// The samples of the first batches of the first window, sorted by length.
BatchItems first_samples(const BatchPlan& plan, GlobalBatch& first) {
    first = plan.batch(0);
    BatchItems all;
    all.lengths.resize(first.items->lengths.size());
    for (std::int64_t k = 0; k < std::min(most_batches, plan.batches_per_epoch()); ++k) {
        const GlobalBatch batch = plan.batch(k);
        if (batch.window != first.window)
            break;
        all.samples.insert(
            all.samples.end(), batch.items->samples.begin(), batch.items->samples.end());
        all.units.insert(all.units.end(), batch.items->units.begin(), batch.items->units.end());
        for (std::size_t field = 0; field < all.lengths.size(); ++field)
            all.lengths[field].insert(all.lengths[field].end(),
                                      batch.items->lengths[field].begin(),
                                      batch.items->lengths[field].end());
    }
    return all;
}

std::vector<std::size_t> order_by_length(const std::vector<std::int64_t>& lengths) {
    std::vector<std::size_t> order(lengths.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return lengths[a] < lengths[b];
    });
    return order;
}

void append(BatchItems& items, const BatchItems& from, std::size_t index) {
    items.samples.push_back(from.samples[index]);
    items.units.push_back(from.units[index]);
    items.lengths.resize(from.lengths.size());
    for (std::size_t field = 0; field < from.lengths.size(); ++field)
        items.lengths[field].push_back(from.lengths[field][index]);
}

// Samples around a quantile of lengths, again and again until `tokens` padded ones are reached.
BatchItems samples_around(double quantile, std::int64_t tokens, const BatchItems& all) {
    const std::vector<std::int64_t> lengths = padded_lengths(all);
    const std::vector<std::size_t> order = order_by_length(lengths);
    const auto count = static_cast<double>(order.size());
    const auto begin =
        static_cast<std::size_t>(std::max(0.0, std::floor((quantile - band / 2) * count)));
    const auto end = std::clamp(static_cast<std::size_t>(std::ceil((quantile + band / 2) * count)),
                                begin + 1,
                                order.size());
    BatchItems items;
    std::int64_t longest = 0;
    for (std::size_t i = begin;; i = i + 1 < end ? i + 1 : begin) {
        longest = std::max<std::int64_t>({longest, lengths[order[i]], 1});
        if (items.size() > 0 && (items.size() + 1) * longest > tokens)
            return items;
        append(items, all, order[i]);
    }
}

// How many of the first of `items` have at most `tokens` padded ones; one where there are any.
std::int64_t count_within(const BatchItems& items, std::int64_t tokens) {
    const std::vector<std::int64_t> lengths = padded_lengths(items);
    std::int64_t longest = 1;
    for (std::int64_t i = 0; i < std::ssize(lengths); ++i) {
        longest = std::max(longest, lengths[static_cast<std::size_t>(i)]);
        if ((i + 1) * longest > tokens)
            return std::max<std::int64_t>(i, 1);
    }
    return std::ssize(lengths);
}

void request_size(Loader& loader,
                  const MeasuredSize& size,
                  const GlobalBatch& first,
                  const BatchItems& all,
                  std::span<const std::int64_t> capacities) {
    const auto tokens_of = [&](std::int64_t capacity) {
        return static_cast<std::int64_t>(std::ceil(size.part * static_cast<double>(capacity)));
    };
    const std::int64_t most = *std::max_element(capacities.begin(), capacities.end());
    GlobalBatch batch = first;
    batch.items = std::make_shared<BatchItems>(samples_around(size.quantile, tokens_of(most), all));
    batch.end = batch.items->size();
    batch.ends_window = false;
    std::vector<Slice> slices;
    for (const std::int64_t capacity : capacities)
        slices.push_back({0, capacity == 0 ? 0 : count_within(*batch.items, tokens_of(capacity))});
    loader.request(batch, slices, {});
}

std::vector<RaggedSample> samples_of(const Calibrator& calibrator) {
    std::vector<RaggedSample> samples;
    for (const Calibrator::Size& size : calibrator.sizes()) {
        const LoadedShare& share = calibrator.share(size);
        RaggedSample sample{.micro_batches = size.micro_batches};
        for (const std::vector<std::int32_t>& lengths : share.batch().items->lengths)
            for (std::int64_t i = 0; i < share.samples(); ++i) {
                const double length = lengths[static_cast<std::size_t>(i)];
                sample.values += length;
                sample.squares += length * length;
            }
        for (const double ms : size.blocks_ms) {
            sample.ms = ms;
            samples.push_back(sample);
        }
    }
    return samples;
}

std::vector<StepSample> in_units(std::span<const RaggedSample> samples, const ItemCost& cost) {
    std::vector<StepSample> points;
    for (const RaggedSample& sample : samples)
        points.push_back({std::max(sample.values + cost.square * sample.squares, 1.0),
                          sample.micro_batches,
                          sample.ms});
    return points;
}

double time_on_line(const StepCost& line, const StepSample& point) {
    return line.start_ms + static_cast<double>(point.micro_batches) * line.micro_batch_ms +
           point.units * line.unit_ms;
}

// The sum of squared relative errors.
double error_of(std::span<const RaggedSample> samples, const ItemCost& cost) {
    const std::vector<StepSample> points = in_units(samples, cost);
    const StepCost line = fit_line(points, 1).cost;
    double sum = 0;
    for (const StepSample& point : points)
        sum += std::pow(time_on_line(line, point) / point.ms - 1, 2);
    return sum;
}

// Collective. Of the ranks that have one; 0 where none has.
ItemCost median_of_ranks(const HostComm& world, double square) {
    std::vector<double> known;
    for (const double of_rank : world.all_gather(square))
        if (!std::isnan(of_rank))
            known.push_back(of_rank);
    if (known.empty())
        return {};
    const auto middle = known.begin() + std::ssize(known) / 2;
    std::nth_element(known.begin(), middle, known.end());
    return {*middle};
}

}  // namespace

ItemCost fit_item_cost(std::span<const RaggedSample> samples) {
    constexpr double smallest = 1e-5, largest = 1, step = 1.1;
    const double without = error_of(samples, {});
    ItemCost best;
    double least = without;
    for (double square = smallest; square <= largest; square *= step) {
        const double error = error_of(samples, {square});
        if (error < least) {
            least = error;
            best = {square};
        }
    }
    return least < (1 - least_improvement) * without ? best : ItemCost{};
}

RaggedCalibration calibrate_ragged(const HostComm& world,
                                   Model& model,
                                   FlatParameters& parameters,
                                   Loader& loader,
                                   const BatchPlan& plan,
                                   std::span<const std::int64_t> capacities,
                                   const CalibrationOptions& options) {
    const std::int64_t capacity = capacities[static_cast<std::size_t>(world.rank())];
    const KeepGenerator keep{parameters.values().device()};
    GlobalBatch first;
    const BatchItems all = first_samples(plan, first);
    for (const MeasuredSize& size : ascending_sizes)
        request_size(loader, size, first, all, capacities);
    for (const MeasuredSize& size : other_sizes)
        request_size(loader, size, first, all, capacities);
    Calibrator calibrator{
        model, parameters, take_shares(world, loader), std::size(ascending_sizes), options};
    const double rate =
        agree_on(world, [&] { return capacity > 0 ? calibrator.first_look() : 0.0; });
    const double rates = world.all_reduce(rate, ReduceOp::sum);
    agree_on(world, [&] {
        if (capacity > 0)
            calibrator.measure(static_cast<double>(first.size()) / rates);
    });
    parameters.zero_gradients();
    const std::vector<RaggedSample> samples =
        capacity > 0 ? samples_of(calibrator) : std::vector<RaggedSample>{};
    RaggedCalibration result;
    result.item_cost = median_of_ranks(
        world,
        samples.empty() ? std::numeric_limits<double>::quiet_NaN() : fit_item_cost(samples).square);
    if (samples.empty())
        return result;
    result.cost = fit_line(in_units(samples, result.item_cost), 1).cost;
    result.micro_batch = std::min(capacity, calibrator.memory_limit());
    calibrator.describe(result.cost, result.micro_batch);
    return result;
}

}  // namespace hetseq
