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

// All that this rank's cost depends on.
std::string cost_key(const RankSetup& setup, int rank, const CalibrationSubject& subject) {
    const RankInfo& info = setup.topology.rank(rank);
    const auto r = static_cast<std::size_t>(rank);
    std::vector<std::string> parts{version::number,
                                   version::revision,
                                   info.device_name,
                                   format_number(info.cpu_share, 3) + " cores",
                                   std::to_string(info.memory_mb) + " MiB",
                                   std::to_string(setup.threads[r]) + " threads",
                                   std::to_string(std::min(setup.capacities[r], setup.batch_size)) +
                                       " of " + std::to_string(setup.capacities[r]) + " samples",
                                   setup.options.precision,
                                   setup.options.model,
                                   setup.options.batching,
                                   subject.model.config_json()};
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
        const bool on_cpu = setup.device.is_cpu();
        const StepCost measured =
            calibrate(world,
                      subject.model,
                      subject.parameters,
                      subject.loader,
                      subject.plan,
                      setup.capacities,
                      cost,
                      {.memory_mb = on_cpu ? setup.topology.rank(world.rank()).memory_mb : 0});
        if (!cost)
            cache.store(key, measured);
        cost = measured;
    }
    std::vector<StepCost> costs;
    for (const std::string& json : world.all_gather(step_cost_json(*cost)))
        costs.push_back(parse_step_cost(json));
    return costs;
}

}  // namespace

SharePlan make_shares(const HostComm& world,
                      const RankSetup& setup,
                      const CalibrationSubject& subject,
                      std::vector<StepCost> known) {
    const std::string& balance = setup.options.balance;
    if (balance == "auto" && std::ssize(known) == world.size())
        return {world, balance, std::move(known)};
    if (balance == "auto" && world.size() > 1)
        return {world, balance, measured_costs(world, setup, subject)};
    if (balance == "auto" || balance == "file")
        return {world, balance, declared_costs(setup.capacities)};
    return {world, balance, setup.capacities};
}

AllocationsByUpdate replayed_allocations(const HostComm& world, const RankSetup& setup) {
    if (setup.options.balance != "file")
        return {};
    return agree_on(world, [&] {
        return read_allocations(setup.options.plan_file, setup.capacities, setup.batch_size);
    });
}

}  // namespace hetseq
