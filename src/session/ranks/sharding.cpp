#include "hetseq/session/ranks/sharding.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/cut_shards.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/gradient_buckets.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/session/ranks/by_rank.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

// Whether gradients can be summed while backward goes on without slowing it: the network or a GPU
// does it, or a core that no rank computes on. The same on all ranks.
bool sums_beside_backward(const RunSettings& settings) {
    if (settings.topology.hosts > 1)
        return true;
    const std::vector<RankInfo>& ranks = settings.topology.ranks;
    return std::any_of(ranks.begin(), ranks.end(), [&](const RankInfo& info) {
        return settings.has_core_to_spare(info.rank);
    });
}

}  // namespace

std::int64_t bucket_bytes(const RunSettings& settings, const FlatParameters& parameters) {
    // The communicator over MPI sums both halves and the whole of these sizes directly.
    constexpr std::int64_t least_direct = std::int64_t{64} << 10;
    constexpr std::int64_t most_direct = std::int64_t{16} << 20;
    // Of the whole model: stages with unlike parts of it sum what they share in the same buckets.
    const std::int64_t all =
        parameters.all_numel() * static_cast<std::int64_t>(parameters.gradients().element_size());
    const auto wanted = static_cast<std::int64_t>(settings.options().bucket_mb * (1 << 20));
    if (all > least_direct && all <= std::min(2 * wanted, most_direct) &&
        !sums_beside_backward(settings))
        return all;
    return std::min(wanted, all / 2);
}

std::vector<std::int64_t> shard_parts(const std::vector<ShardPart>& choices,
                                      const std::vector<std::int64_t>& room) {
    using By = ShardPart::By;
    const ShardPart& first = choices.front();
    for (const ShardPart& choice : choices)
        if (choice.by != first.by)
            throw BadConfig("--shard-by is '" + choice_text(first) + "' for one rank and '" +
                                choice_text(choice) + "' for another",
                            "parts are all by memory, all even, or all numbers",
                            "give one of the words alone, or a list of numbers");
    std::vector<std::int64_t> parts;
    for (std::size_t r = 0; r < choices.size(); ++r)
        parts.push_back(first.by == By::memory ? room[r]
                        : first.by == By::even ? 1
                                               : choices[r].number);
    if (std::all_of(parts.begin(), parts.end(), [](std::int64_t part) { return part == 0; }))
        throw BadConfig("--shard-by " + list_by_rank(choices).text() +
                            " gives no rank a part of the optimizer's state",
                        first.by == By::memory
                            ? "no rank's memory has any left beside values and gradients"
                            : "all numbers are 0",
                        first.by == By::memory ? "use a smaller model, or devices with more memory"
                                               : "give at least one rank a number above 0");
    return parts;
}

void shard_state(const RunSettings& settings,
                 FlatParameters& parameters,
                 const std::vector<std::int64_t>& room,
                 int rank) {
    if (settings.options().shard == "none" || settings.topology.ranks.size() == 1)
        return;
    if (const std::int64_t staleness = settings.options().trainer.staleness; staleness > 0)
        throw BadConfig(
            "--staleness " + std::to_string(staleness) + " with --shard " +
                settings.options().shard,
            "where the state is cut, each update waits for the values of the one before",
            "leave one of them out");
    const auto buckets = cut_buckets(parameters, bucket_bytes(settings, parameters));
    parameters.shard_state(
        cut_shards(blocks_of(parameters, buckets), shard_parts(settings.shard_by, room)), rank);
}

void check_follows_shards(const Optimizer& optimizer,
                          const FlatParameters& parameters,
                          const std::string& name) {
    if (parameters.state_ranges().empty() || optimizer.follows_shards())
        return;
    if (name == "python")
        throw BadConfig(
            "--shard optimizer with an optimizer of the task's own",
            "the state of PyTorch's optimizers cannot be cut over ranks",
            "leave --shard out, or the task's method 'optimizer', and take one of adam, "
            "adamw, lamb, sgd and adadelta");
    throw BadConfig("--shard optimizer with --optimizer " + name,
                    "the state of this optimizer cannot be cut over ranks",
                    "leave --shard out, or take one of adam, adamw, lamb, sgd and adadelta");
}

}  // namespace hetseq
