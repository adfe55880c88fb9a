#include "hetseq/session/run_settings.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/session/effective_values.hpp"
#include "hetseq/session/option_agreement.hpp"
#include "hetseq/session/part_option_table.hpp"
#include "hetseq/session/rank_list.hpp"
#include "hetseq/session/threads.hpp"

namespace hetseq {

namespace {

// Throws BadConfig, with the known names, for a name that no part has.
void check_parts(const Options& options, const Parts& parts) {
    parts.models.get(options.model);
    parts.datasets.get(options.dataset);
    parts.batchings.get(options.batching);
    parts.optimizers.get(options.parts.optimizer.name);
    parts.schedules.get(options.parts.schedule.name);
}

// The numbers of `option` by rank, from each rank's own list or number.
std::vector<std::int64_t> numbers_by_rank(const HostComm& world,
                                          const Topology& topology,
                                          const std::string& option,
                                          const std::string& list) {
    return world.all_gather(
        agree_on(world, [&] { return rank_value(option, list, topology, world.rank()); }));
}

void settle_batch_size(RunSettings& settings) {
    const Options& options = settings.options();
    const std::int64_t capacity =
        std::accumulate(settings.capacities.begin(), settings.capacities.end(), std::int64_t{0});
    constexpr std::int64_t largest = 1'000'000'000;
    if (capacity > largest / options.update_freq)
        throw BadConfig("the global batch is larger than " + std::to_string(largest),
                        "the sum of --max-sentences times --update-freq",
                        "lower one of them");
    if (options.batch_size > 0 && options.update_freq > 1)
        throw BadConfig("--batch-size and --update-freq were both given",
                        "each fixes the global batch",
                        "give one of them");
    if (capacity == 0)
        throw BadConfig("no rank takes any work",
                        "--max-sentences is 0 on all of them",
                        "give at least one rank a capacity");
    settings.settle({{"max-sentences", rank_list(settings.capacities)},
                     {"batch-size",
                      std::to_string(options.batch_size > 0 ? options.batch_size
                                                            : capacity * options.update_freq)},
                     {"update-freq", "1"}});
}

void set_threads(const HostComm& world, RunSettings& settings) {
    const std::vector<std::int64_t> asked =
        numbers_by_rank(world, settings.topology, "threads", settings.options().threads);
    const ThreadChoice choice =
        choose_threads(settings.topology.rank(world.rank()),
                       settings.topology.ranks_on_host_of(world.rank()),
                       static_cast<int>(asked[static_cast<std::size_t>(world.rank())]));
    if (!choice.warning.empty())
        log::warn_here(choice.warning);
    at::set_num_threads(choice.threads);
    settings.threads = world.all_gather(static_cast<std::int64_t>(choice.threads));
    settings.settle({{"threads", rank_list(asked)}});
}

void set_cache(const HostComm& world, RunSettings& settings) {
    const std::vector<std::int64_t> sizes =
        numbers_by_rank(world, settings.topology, "cache-mb", settings.options().cache_mb);
    settings.corpus = settings.options().corpus;
    settings.corpus.cache_mb = sizes[static_cast<std::size_t>(world.rank())];
    settings.settle({{"cache-mb", rank_list(sizes)}});
}

// `memory`: the amount, after a comma; empty if it does not matter.
std::string limits(const RunSettings& settings, int rank, const std::string& memory) {
    const RankInfo& info = settings.topology.rank(rank);
    const auto r = static_cast<std::size_t>(rank);
    const auto sharing = std::count_if(
        settings.topology.ranks.begin(), settings.topology.ranks.end(), [&](const RankInfo& other) {
            return !info.device_uuid.empty() && other.device_uuid == info.device_uuid;
        });
    return format_number(info.cpu_share, 3) + " cores" + memory + ", threads " +
           std::to_string(settings.threads[r]) + ", measured up to " +
           std::to_string(std::min(settings.capacities[r], settings.batch_size())) + " of " +
           std::to_string(settings.capacities[r]) + " samples" +
           (sharing > 1 ? ", a device of " + std::to_string(sharing) + " ranks" : "");
}

}  // namespace

void SettledOptions::settle(const OptionValues& settled) {
    for (const auto& [name, value] : settled)
        values_.at(name) = value;
    options_ = typed_options(values_, table_);
}

SettledOptions settle_options(const HostComm& world,
                              const GivenOptions& given,
                              const Parts& parts) {
    const OptionValues values = agree_on(world, [&] { return effective_values(given, parts); });
    const OptionTable table = options_in_use(parts, values);
    agree_on_options(world, values, table);
    return agree_on(world, [&] {
        SettledOptions settled(values, table);
        check_parts(settled.options(), parts);
        return settled;
    });
}

RunSettings set_up_ranks(const HostComm& world, SettledOptions settled) {
    RunSettings settings{std::move(settled)};
    settings.topology = discover_topology(world, settings.options().device);
    settings.device = at::Device(settings.topology.rank(world.rank()).device);
    at::globalContext().setAllowTF32CuDNN(false);  // fp32 is what --precision says
    at::globalContext().setAllowTF32CuBLAS(false);
    settings.dtype = settings.options().precision == "fp64" ? at::kDouble : at::kFloat;
    settings.capacities = numbers_by_rank(
        world, settings.topology, "max-sentences", settings.options().max_sentences);
    settle_batch_size(settings);
    set_threads(world, settings);
    set_cache(world, settings);
    return settings;
}

std::string rank_limits(const RunSettings& settings, int rank) {
    return limits(
        settings, rank, ", " + std::to_string(settings.topology.rank(rank).memory_mb) + " MiB");
}

std::vector<int> like_ranks(const RunSettings& settings) {
    std::map<std::string, int> first;  // rank of its kind
    std::vector<int> kinds;
    for (const RankInfo& info : settings.topology.ranks) {
        const std::string kind = info.device_name + "\n" + limits(settings, info.rank, "");
        kinds.push_back(first.emplace(kind, info.rank).first->second);
    }
    return kinds;
}

std::string start_report(const RunSettings& settings, SharePlan& shares) {
    const auto& allocation = shares.allocation(settings.batch_size());
    const bool measured = shares.policy() == "auto" && settings.topology.ranks.size() > 1;
    std::vector<std::vector<std::string>> rows{
        {"rank", "host", "device", "threads", "capacity", "share", "of the batch"}};
    if (measured)
        rows[0].insert(rows[0].end(), {"samples/s", "ms"});
    for (const RankInfo& info : settings.topology.ranks) {
        const auto r = static_cast<std::size_t>(info.rank);
        const double part =
            100 * static_cast<double>(allocation[r]) / static_cast<double>(settings.batch_size());
        rows.push_back({std::to_string(info.rank),
                        info.host,
                        info.device_name,
                        std::to_string(settings.threads[r]),
                        std::to_string(shares.costs()[r].micro_batch),
                        std::to_string(allocation[r]),
                        format_number(part, 3) + " %"});
        if (measured)
            rows.back().insert(rows.back().end(),
                               {format_number(1000 * shares.costs()[r].rate(), 4),
                                format_number(shares.costs()[r].time_ms(allocation[r]), 4)});
    }
    return settings.topology.table() + "global batch " + std::to_string(settings.batch_size()) +
           ", balance " + settings.options().balance + "\n" + format_table(rows);
}

}  // namespace hetseq
