#include "hetseq/session/working_ranks.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/rank_ranges.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/balance/compare_times.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/train/shares/update_cost.hpp"
#include "hetseq/session/ranks/by_rank.hpp"
#include "hetseq/session/replica.hpp"

namespace hetseq {

namespace {

std::vector<int> ranks_where(const std::vector<bool>& chosen) {
    std::vector<int> ranks;
    for (std::size_t r = 0; r < chosen.size(); ++r)
        if (chosen[r])
            ranks.push_back(static_cast<int>(r));
    return ranks;
}

// What `value_of` gives for each of `ranks`.
template <class Function>
auto of_ranks(const std::vector<int>& ranks, const Function& value_of) {
    std::vector<decltype(value_of(0))> values;
    std::transform(ranks.begin(), ranks.end(), std::back_inserter(values), value_of);
    return values;
}

}  // namespace

std::vector<int> working_ranks(const HostComm& world,
                               const RunSettings& settings,
                               Replica& replica,
                               SharePlan& shares) {
    std::vector<int> all(static_cast<std::size_t>(world.size()));
    std::iota(all.begin(), all.end(), 0);
    std::vector<bool> gpus;
    for (const RankInfo& info : settings.topology.ranks)
        gpus.push_back(info.has_gpu());
    const auto count = std::count(gpus.begin(), gpus.end(), true);
    if (count == 0 || count == std::ssize(gpus) || settings.options().balance.policy != "auto")
        return all;
    if (settings.options().shard != "none")
        return all;  // the CPUs' memory may be what the model needs

    const double reduction_ms = world.all_reduce(
        measure_reduction_ms(replica.parameters(), replica.communicator(), sent_type(settings)),
        ReduceOp::max);
    const std::int64_t units = shares.full_batch(replica.plan());
    // Rank 0's numbers are taken, since CPUs of different makes round differently.
    const ComparedTimes own =
        agree_on(world, [&] { return compare_times(shares.costs(), gpus, units, reduction_ms); });
    const ComparedTimes times{world.all_gather(own.all_ms).front(),
                              world.all_gather(own.some_ms).front()};
    if (times.all_ms < times.some_ms)
        return all;
    std::vector<bool> cpus = gpus;
    cpus.flip();
    log::info("left out: " + name_ranks(ranks_where(cpus)) + " on CPUs, since an update takes " +
              format_number(times.some_ms, 3) + " ms on the GPUs alone and " +
              format_number(times.all_ms, 3) + " ms with all ranks, whose gradients' sum takes " +
              format_number(reduction_ms, 3) + " ms through host memory");
    return ranks_where(gpus);
}

std::vector<int> ranks_with_capacity(const RunSettings& settings, std::vector<int> ranks) {
    const Options& options = settings.options();
    if (options.virtual_workers != "auto" || options.stage_units != "auto")
        return ranks;
    std::vector<int> without;
    std::erase_if(ranks, [&](int rank) {
        const bool has_none = settings.capacities[static_cast<std::size_t>(rank)] == 0;
        if (has_none)
            without.push_back(rank);
        return has_none;
    });
    if (!without.empty())
        log::info("left out: " + name_ranks(without) +
                  ", whose capacity is 0; the others are numbered anew, from 0 on");
    return ranks;
}

SettledOptions options_on(const RunSettings& settings, const std::vector<int>& ranks) {
    SettledOptions options = settings;
    const Options& typed = options.options();
    for (const ByRank<std::int64_t>* list :
         {&typed.max_sentences, &typed.max_tokens, &typed.threads, &typed.cache_mb}) {
        if (list->is_empty())
            continue;
        const std::string& name = options.option_at(list).name;
        options.settle(*list, of_ranks(ranks, [&](int rank) {
            return value_of_rank(name, *list, RankPlace(settings.topology, rank));
        }));
    }
    options.settle(typed.precision, of_ranks(ranks, [&](int rank) {
                       return PrecisionChoice(settings.precisions[static_cast<std::size_t>(rank)]);
                   }));
    options.settle(typed.recompute, of_ranks(ranks, [&](int rank) {
                       return settings.recompute[static_cast<std::size_t>(rank)];
                   }));
    options.settle(typed.shard_by, of_ranks(ranks, [&](int rank) {
                       return settings.shard_by[static_cast<std::size_t>(rank)];
                   }));
    const bool all_on_gpus = std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
        return settings.topology.rank(rank).has_gpu();
    });
    if (all_on_gpus)
        options.settle(typed.device, std::vector{DeviceChoice::cuda});
    return options;
}

// A rank without a capacity may be a stage whose micro-batches others limit. Where these others are
// left out, what the least of them said still holds.
SettledOptions options_in_layout(const RunSettings& settings, const std::vector<int>& ranks) {
    SettledOptions options = options_on(settings, ranks);
    for (ByRank<std::int64_t> Options::*const limit :
         {&Options::max_sentences, &Options::max_tokens}) {
        const ByRank<std::int64_t>& list = settings.options().*limit;
        if (list.is_empty())
            continue;
        const std::string& name = settings.option_at(&list).name;
        const auto of_rank = [&](int rank) {
            return value_of_rank(name, list, RankPlace(settings.topology, rank));
        };
        std::int64_t least = 0;
        for (const RankInfo& info : settings.topology.ranks)
            if (const std::int64_t own = of_rank(info.rank); own > 0)
                least = least == 0 ? own : std::min(least, own);
        if (std::ranges::all_of(ranks, [&](int rank) { return of_rank(rank) == 0; }) && least > 0)
            options.settle(options.options().*limit, std::vector(ranks.size(), least));
    }
    return options;
}

}  // namespace hetseq
