#include "hetseq/app/balance_setup.hpp"

#include <algorithm>
#include <string>

#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "hetseq/version.hpp"

#include "hetseq/data/corpus.hpp"
#include "hetseq/data/loader.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/calibration.hpp"
#include "hetseq/train/step_cost_file.hpp"
#include "hetseq/app/rank_setup.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t mib = 1 << 20;

// Of the host, this rank's part, without the caches that fill while it trains, that of validation
// no larger than that of training [MiB]; 0 on other devices, which say when they are full.
std::int64_t memory_to_plan_with(const RankSetup& setup,
                                 int rank,
                                 const CalibrationSubject& subject) {
    if (!setup.device.is_cpu())
        return 0;
    const std::int64_t caches =
        subject.corpus.cache_bytes() / mib * (setup.options.valid_data.empty() ? 1 : 2);
    return std::max<std::int64_t>(
        1, setup.topology.rank(rank).memory_mb - caches / setup.topology.ranks_on_host_of(rank));
}

// All that this rank's cost depends on.
std::string cost_key(const RankSetup& setup, int rank, const CalibrationSubject& subject) {
    std::vector<std::string> parts{version::number,
                                   version::revision,
                                   setup.topology.rank(rank).device_name,
                                   rank_limits(setup, rank),
                                   setup.options.precision,
                                   setup.options.model,
                                   setup.options.batching,
                                   subject.model.config_json(),
                                   subject.beside,
                                   std::to_string(memory_to_plan_with(setup, rank, subject))};
    for (const auto& parameter : subject.parameters.parameters())
        parts.push_back(std::to_string(parameter.numel));
    for (const auto& [field, shape] : subject.corpus.row_shapes()) {
        parts.push_back(field);
        for (const std::int64_t length : shape)
            parts.push_back(std::to_string(length));
    }
    return join(parts, "\n");
}

StepCostCache cache_of(const Options& options) {
    if (options.cache_dir == "none")
        return StepCostCache({});
    return StepCostCache(options.cache_dir.empty() ? default_cache_folder()
                                                   : std::filesystem::path(options.cache_dir));
}

// Collective. Every rank's cost, by rank.
std::vector<StepCost> measured_costs(const HostComm& world,
                                     const RankSetup& setup,
                                     const CalibrationSubject& subject) {
    const StepCostCache cache = cache_of(setup.options);
    const std::string key = cost_key(setup, world.rank(), subject);
    std::optional<StepCost> cost = cache.find(key);
    const std::int64_t unknown = world.all_reduce(std::int64_t{cost ? 0 : 1}, ReduceOp::sum);
    if (unknown > 0) {
        log::info("measuring the speed of " + std::to_string(unknown) + " of " +
                  std::to_string(world.size()) + " ranks");
        const StepCost measured =
            calibrate(world,
                      subject.model,
                      subject.parameters,
                      subject.loader,
                      subject.plan,
                      setup.capacities,
                      cost,
                      {.memory_mb = memory_to_plan_with(setup, world.rank(), subject)});
        const std::int64_t capacity = setup.capacities[static_cast<std::size_t>(world.rank())];
        if (measured.micro_batch < capacity)
            log::warn_here("memory holds micro-batches of " + std::to_string(measured.micro_batch) +
                           " samples, --max-sentences is " + std::to_string(capacity));
        if (!cost)
            cache.store(key, measured);
        cost = measured;
    }
    std::vector<StepCost> costs;
    for (const std::string& json : world.all_gather(step_cost_json(*cost)))
        costs.push_back(parse_step_cost(json));
    return costs;
}

// With the micro-batches that the recorded run had, which its results' roundings depend on.
std::vector<StepCost> recorded_costs(const RankSetup& setup, const RecordedAllocations& recorded) {
    std::vector<std::int64_t> capacities = setup.capacities;
    for (std::size_t r = 0; r < recorded.micro_batches.size(); ++r)
        capacities[r] = std::min(capacities[r], recorded.micro_batches[r]);
    return declared_costs(capacities);
}

}  // namespace

SharePlan make_shares(const HostComm& world,
                      const RankSetup& setup,
                      const RecordedAllocations& recorded,
                      const CalibrationSubject& subject,
                      std::vector<StepCost> known) {
    const std::string& balance = setup.options.balance;
    if (balance == "auto" && std::ssize(known) == world.size())
        return {world, balance, std::move(known)};
    if (balance == "auto" && world.size() > 1)
        return {world, balance, measured_costs(world, setup, subject)};
    if (balance == "file")
        return {world, balance, recorded_costs(setup, recorded)};
    if (balance == "auto")
        return {world, balance, declared_costs(setup.capacities)};
    return {world, balance, setup.capacities};
}

RecordedAllocations replayed_allocations(const HostComm& world, const RankSetup& setup) {
    if (setup.options.balance != "file")
        return {};
    return agree_on(world, [&] {
        return read_allocations(setup.options.plan_file, setup.capacities, setup.batch_size);
    });
}

}  // namespace hetseq
