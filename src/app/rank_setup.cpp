#include "hetseq/app/rank_setup.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/share_plan.hpp"
#include "hetseq/app/effective_values.hpp"
#include "hetseq/app/option_agreement.hpp"
#include "hetseq/app/rank_list.hpp"
#include "hetseq/app/threads.hpp"

namespace hetseq {

namespace {

// Throws BadConfig, naming what there is, for a name that no part bears.
void check_parts(const Options& options, const Parts& parts) {
    parts.models.get(options.model);
    parts.datasets.get(options.dataset);
    parts.batchings.get(options.batching);
    parts.optimizers.get(options.parts.optimizer.name);
    parts.schedules.get(options.parts.schedule.name);
}

void settle_batch_size(const HostComm& world, RankSetup& setup) {
    const Options& options = setup.options;
    const std::int64_t own = agree_on(world, [&] {
        return rank_value("max-sentences", options.max_sentences, setup.topology, world.rank());
    });
    setup.capacities = world.all_gather(own);
    const std::int64_t capacity =
        std::accumulate(setup.capacities.begin(), setup.capacities.end(), std::int64_t{0});
    constexpr std::int64_t largest = 1'000'000'000;
    if (capacity > largest / options.update_freq)
        throw BadConfig("the global batch is larger than " + std::to_string(largest),
                        "the sum of --max-sentences times --update-freq",
                        "lower either");
    if (options.batch_size > 0 && options.update_freq > 1)
        throw BadConfig("--batch-size and --update-freq were both given",
                        "each fixes the global batch",
                        "give one of them");
    setup.batch_size = options.batch_size > 0 ? options.batch_size : capacity * options.update_freq;
    if (capacity == 0)
        throw BadConfig("no rank takes any work",
                        "--max-sentences is 0 on all of them",
                        "give at least one rank a capacity");
    setup.values["max-sentences"] = rank_list(setup.capacities);
    setup.values["batch-size"] = std::to_string(setup.batch_size);
    setup.values["update-freq"] = "1";
}

void set_threads(const HostComm& world, RankSetup& setup) {
    const std::int64_t asked = agree_on(world, [&] {
        return rank_value("threads", setup.options.threads, setup.topology, world.rank());
    });
    const ThreadChoice choice = choose_threads(setup.topology.rank(world.rank()),
                                               setup.topology.ranks_on_host_of(world.rank()),
                                               static_cast<int>(asked));
    if (!choice.warning.empty())
        log::warn_here(choice.warning);
    at::set_num_threads(choice.threads);
    setup.threads = world.all_gather(static_cast<std::int64_t>(choice.threads));
    setup.values["threads"] = rank_list(world.all_gather(asked));
}

void set_cache(const HostComm& world, RankSetup& setup) {
    setup.options.corpus.cache_mb = agree_on(world, [&] {
        return rank_value("cache-mb", setup.options.cache_mb, setup.topology, world.rank());
    });
    setup.values["cache-mb"] = rank_list(world.all_gather(setup.options.corpus.cache_mb));
}

}  // namespace

SettledOptions settle_options(const HostComm& world,
                              const GivenOptions& given,
                              const Parts& parts) {
    SettledOptions settled;
    settled.values = agree_on(world, [&] { return effective_values(given, parts); });
    agree_on_options(world, settled.values);
    settled.options = agree_on(world, [&] {
        const Options options = typed_options(settled.values);
        check_parts(options, parts);
        return options;
    });
    return settled;
}

RankSetup set_up_ranks(const HostComm& world, SettledOptions settled) {
    RankSetup setup;
    setup.values = std::move(settled.values);
    setup.options = std::move(settled.options);
    setup.topology = discover_topology(world, setup.options.device);
    setup.device = at::Device(setup.topology.rank(world.rank()).device);
    at::globalContext().setAllowTF32CuDNN(false);  // fp32 is what --precision says
    at::globalContext().setAllowTF32CuBLAS(false);
    setup.dtype = setup.options.precision == "fp64" ? at::kDouble : at::kFloat;
    settle_batch_size(world, setup);
    set_threads(world, setup);
    set_cache(world, setup);
    return setup;
}

std::string rank_limits(const RankSetup& setup, int rank) {
    const RankInfo& info = setup.topology.rank(rank);
    const auto r = static_cast<std::size_t>(rank);
    const auto sharing = std::count_if(
        setup.topology.ranks.begin(), setup.topology.ranks.end(), [&](const RankInfo& other) {
            return !info.device_uuid.empty() && other.device_uuid == info.device_uuid;
        });
    return format_number(info.cpu_share, 3) + " cores, " + std::to_string(info.memory_mb) +
           " MiB, threads " + std::to_string(setup.threads[r]) + ", measured up to " +
           std::to_string(std::min(setup.capacities[r], setup.batch_size)) + " of " +
           std::to_string(setup.capacities[r]) + " samples" +
           (sharing > 1 ? ", a device of " + std::to_string(sharing) + " ranks" : "");
}

std::string start_report(const RankSetup& setup, SharePlan& shares) {
    const auto& allocation = shares.allocation(setup.batch_size);
    const bool measured = shares.policy() == "auto" && setup.topology.ranks.size() > 1;
    std::vector<std::vector<std::string>> rows{
        {"rank", "host", "device", "threads", "capacity", "share", "of the batch"}};
    if (measured)
        rows[0].insert(rows[0].end(), {"samples/s", "ms"});
    for (const RankInfo& info : setup.topology.ranks) {
        const auto r = static_cast<std::size_t>(info.rank);
        const double part =
            100 * static_cast<double>(allocation[r]) / static_cast<double>(setup.batch_size);
        rows.push_back({std::to_string(info.rank),
                        info.host,
                        info.device_name,
                        std::to_string(setup.threads[r]),
                        std::to_string(shares.costs()[r].micro_batch),
                        std::to_string(allocation[r]),
                        format_number(part, 3) + " %"});
        if (measured)
            rows.back().insert(rows.back().end(),
                               {format_number(1000 * shares.costs()[r].rate(), 4),
                                format_number(shares.costs()[r].time_ms(allocation[r]), 4)});
    }
    return setup.topology.table() + "global batch " + std::to_string(setup.batch_size) +
           ", balance " + setup.options.balance + "\n" + format_table(rows);
}

}  // namespace hetseq
