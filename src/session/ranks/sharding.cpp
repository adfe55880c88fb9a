#include "hetseq/session/ranks/sharding.hpp"

#include <algorithm>
#include <numeric>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/cut_shards.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/gradient_buckets.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/session/ranks/rank_list.hpp"
#include "hetseq/session/ranks/word_choices.hpp"
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
        const auto threads = settings.threads[static_cast<std::size_t>(info.rank)];
        return info.has_gpu() || info.cpu_share >= static_cast<double>(threads + 1);
    });
}

bool is_word(const std::string& word) {
    const std::vector<std::string> words = shard_words();
    return std::find(words.begin(), words.end(), word) != words.end();
}

// What a rank's memory has left [MiB]; ranks that share a device share it.
std::int64_t memory_left_mb(const RunSettings& settings,
                            const FlatParameters& parameters,
                            const RankInfo& info) {
    const auto sharing = std::count_if(
        settings.topology.ranks.begin(), settings.topology.ranks.end(), [&](const RankInfo& other) {
            return other.rank == info.rank ||
                   (info.has_gpu() && other.device_uuid == info.device_uuid);
        });
    const std::size_t whole = parameters.values().nbytes() + parameters.gradients().nbytes();
    return std::max<std::int64_t>(info.memory_mb / sharing - static_cast<std::int64_t>(whole >> 20),
                                  0);
}

std::int64_t part_of(const RunSettings& settings,
                     const FlatParameters& parameters,
                     const RankInfo& info) {
    const std::string& word = settings.shard_by[static_cast<std::size_t>(info.rank)];
    if (word == "memory")
        return memory_left_mb(settings, parameters, info);
    return word == "even" ? 1 : std::stoll(word);
}

}  // namespace

std::string rank_shard_part(const std::string& list, const Topology& topology, int rank) {
    return rank_word("shard-by", list, shard_words(), topology, rank, OrNumber::yes);
}

std::int64_t bucket_bytes(const RunSettings& settings, const FlatParameters& parameters) {
    // The communicator over MPI sums both halves and the whole of these sizes directly.
    constexpr std::int64_t least_direct = std::int64_t{64} << 10;
    constexpr std::int64_t most_direct = std::int64_t{16} << 20;
    const auto all = static_cast<std::int64_t>(parameters.gradients().nbytes());
    const auto wanted = static_cast<std::int64_t>(settings.options().bucket_mb * (1 << 20));
    if (all > least_direct && all <= std::min(2 * wanted, most_direct) &&
        !sums_beside_backward(settings))
        return all;
    return std::min(wanted, all / 2);
}

std::vector<std::int64_t> shard_parts(const RunSettings& settings,
                                      const FlatParameters& parameters) {
    const std::vector<std::string>& words = settings.shard_by;
    const std::string& first = words.front();
    for (const std::string& word : words)
        if (is_word(first) ? word != first : is_word(word))
            throw BadConfig(
                "--shard-by is '" + first + "' for one rank and '" + word + "' for another",
                "parts are all by memory, all even, or all numbers",
                "give one of the words alone, or a list of numbers");
    std::vector<std::int64_t> parts;
    for (const RankInfo& info : settings.topology.ranks)
        parts.push_back(part_of(settings, parameters, info));
    if (std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) > 0)
        return parts;
    if (first != "memory")
        throw BadConfig("--shard-by gives no rank a part",
                        "all numbers are 0",
                        "give at least one rank a number above 0");
    const auto most = std::max_element(
        settings.topology.ranks.begin(),
        settings.topology.ranks.end(),
        [](const RankInfo& a, const RankInfo& b) { return a.memory_mb < b.memory_mb; });
    const std::size_t whole = parameters.values().nbytes() + parameters.gradients().nbytes();
    throw BadConfig("no rank has memory for the optimizer's state",
                    "values and gradients take " + std::to_string(whole >> 20) +
                        " MiB, and the largest memory of a rank, " + std::to_string(most->rank) +
                        ", is " + std::to_string(most->memory_mb) + " MiB",
                    "use a smaller model, larger devices, or fewer ranks on a host");
}

void shard_state(const RunSettings& settings, FlatParameters& parameters, int rank) {
    if (settings.options().shard == "none" || settings.topology.ranks.size() == 1)
        return;
    const auto buckets = cut_buckets(parameters, bucket_bytes(settings, parameters));
    parameters.shard_state(
        cut_shards(blocks_of(parameters, buckets), shard_parts(settings, parameters)), rank);
}

void check_follows_shards(const Optimizer& optimizer,
                          const FlatParameters& parameters,
                          const std::string& name) {
    if (parameters.state_ranges().empty() || optimizer.follows_shards())
        return;
    throw BadConfig("--shard optimizer with --optimizer " + name,
                    "the state of this optimizer cannot be cut over ranks",
                    "leave --shard out, or take one of adam, adamw, lamb, sgd and adadelta");
}

}  // namespace hetseq
