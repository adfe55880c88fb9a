#include "chain_measurement.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/device_memory.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t smallest_part = 16;  // of the capacity
constexpr std::int64_t measured_part = 4;   // beside the capacity and the smallest

MicroBatchCap cap_of(const RunSettings& settings, std::int64_t size) {
    if (!settings.is_ragged())
        return {.samples = size};
    std::int64_t samples = MicroBatchCap::none;
    for (const std::int64_t own : settings.max_samples)
        if (own > 0)
            samples = std::min(samples, own);
    return {.samples = samples, .tokens = size};
}

std::int64_t size_of(const RunSettings& settings, const MicroBatch& micro_batch) {
    return settings.is_ragged() ? micro_batch.padded_tokens : micro_batch.samples;
}

std::int64_t size_of(const RunSettings& settings, const LoadedShare& share) {
    std::int64_t sum = 0;
    for (const MicroBatch& micro_batch : share.micro_batches())
        sum += size_of(settings, micro_batch);
    return sum;
}

// The micro-batch with most to compute.
const MicroBatch& largest(const RunSettings& settings, const LoadedShare& share) {
    const auto& all = share.micro_batches();
    return *std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
        return size_of(settings, a) < size_of(settings, b);
    });
}

// What a micro-batch must hold at the least: a whole group of samples that the model looks at.
std::int64_t least_size(const RunSettings& settings, Feed& feed, const Model& model) {
    if (settings.is_ragged() || !model.has_groups(Mode::train))
        return 1;
    BatchPlan plan = feed.plan(settings.batch_size());
    plan.set_groups(settings.options().norm_group);
    return plan.largest_group();
}

// Collective. The first batch, of which every rank gets all.
LoadedShare first_batch(const HostComm& world,
                        const RunSettings& settings,
                        Feed& feed,
                        const MicroBatchCap& cap) {
    const GlobalBatch batch =
        agree_on(world, [&] { return feed.plan(settings.batch_size()).batch(0); });
    const std::vector<Slice> all(static_cast<std::size_t>(world.size()), {batch.begin, batch.end});
    feed.loader().request(batch, all, cap);
    return agree_on(world, [&] { return feed.loader().take(); });
}

// A unit's values matter little for its speed.
void prepare_unit(Model& model, const RunSettings& settings, int rank) {
    initialise_parameters(model, settings.options().seed);
    model.to(settings.device, settings.precision);
    const RecomputeChoice choice = settings.recompute[static_cast<std::size_t>(rank)];
    model.recompute(choice == all_layers ? model.recomputable_layers() : 0);
}

Pauses pauses_of(const RunSettings& settings, int rank) {
    return settings.lacks_cores(rank) ? Pauses::likely : Pauses::unlikely;
}

// Each half of the one before, the largest first. Groups are not divided: so many samples of a
// micro-batch are computed.
std::vector<std::int64_t> sizes_to_weigh(const RunSettings& settings,
                                         std::int64_t capacity,
                                         std::int64_t least) {
    const std::int64_t group = settings.options().norm_group;
    std::vector<std::int64_t> sizes;
    for (std::int64_t part = 1; part == 1 || (part <= smallest_part && capacity / part >= least);
         part *= 2) {
        const std::int64_t size = capacity / part;
        sizes.push_back(least > 1 && size >= group ? size / group * group : size);
    }
    return sizes;
}

// By size: of all units.
using CostsOfSizes = std::map<std::int64_t, std::vector<UnitCost>>;

// What was measured, or what lies between the two sizes around, or beyond the nearest two.
std::vector<UnitCost> costs_at(const CostsOfSizes& measured, std::int64_t size) {
    auto above = measured.lower_bound(size);
    if (above == measured.end())
        --above;
    if (above->first == size || measured.size() == 1)
        return above->second;
    if (above == measured.begin())
        ++above;
    const auto below = std::prev(above);
    std::vector<UnitCost> costs;
    for (std::size_t unit = 0; unit < above->second.size(); ++unit)
        costs.push_back(cost_between(below->second[unit],
                                     static_cast<double>(below->first),
                                     above->second[unit],
                                     static_cast<double>(above->first),
                                     static_cast<double>(size)));
    return costs;
}

}  // namespace

std::int64_t filled(const MeasuredSize& size, std::int64_t batch, bool is_ragged) {
    return is_ragged ? (batch + size.micro_batches - 1) / size.micro_batches : size.micro_batch;
}

std::vector<MeasuredSize> measure_chain(const HostComm& world,
                                        const RunSettings& settings,
                                        Feed& feed,
                                        Model& model,
                                        std::int64_t capacity) {
    LoadedShare share = first_batch(world, settings, feed, cap_of(settings, capacity));
    return agree_on(world, [&] {
        const std::int64_t least = least_size(settings, feed, model);
        const std::vector<std::int64_t> all = sizes_to_weigh(settings, capacity, least);
        CostsOfSizes measured;
        for (const std::int64_t most : {all.front(), all.front() / measured_part, all.back()}) {
            share.recut(cap_of(settings, std::max<std::int64_t>(most, 1)));
            const MicroBatch micro_batch = share.on_device(largest(settings, share));
            const std::int64_t size = size_of(settings, micro_batch);
            if (measured.contains(size))
                continue;
            measured[size] =
                measure_units(model, micro_batch, pauses_of(settings, world.rank()), [&] {
                    prepare_unit(model, settings, world.rank());
                });
        }
        std::vector<MeasuredSize> sizes;
        for (const std::int64_t most : all) {
            share.recut(cap_of(settings, most));
            MeasuredSize size{
                .micro_batch = most,
                .micro_batches = std::ssize(share.micro_batches()),
                .batch = size_of(settings, share),
                .costs = costs_at(measured, size_of(settings, largest(settings, share)))};
            // Where the number of sentences is the limit, fewer tokens change nothing.
            const bool is_ragged = settings.is_ragged();
            if (sizes.empty() || filled(size, sizes.front().batch, is_ragged) <
                                     filled(sizes.back(), sizes.front().batch, is_ragged))
                sizes.push_back(std::move(size));
        }
        if (!settings.device.is_cpu())
            release_cached_memory();
        return sizes;
    });
}

}  // namespace hetseq
