#include "hetseq/session/run_settings.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <ATen/Parallel.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/session/discover_devices.hpp"
#include "hetseq/session/options/merged_values.hpp"
#include "hetseq/session/options/option_agreement.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/session/ranks/own_choice.hpp"
#include "hetseq/session/ranks/rank_precision.hpp"
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

// What the option whose value `list` is says of this rank.
template <class T>
T own_value(const HostComm& world, const RunSettings& settings, const ByRank<T>& list) {
    return own_choice(
        world, settings.option_at(&list).name, list, RankPlace(settings.topology, world.rank()));
}

// The same by rank, each from its own list or number; `otherwise` where that is empty.
std::vector<std::int64_t> numbers_by_rank(const HostComm& world,
                                          const RunSettings& settings,
                                          const ByRank<std::int64_t>& list,
                                          std::int64_t otherwise = 0) {
    const RankPlace place(settings.topology, world.rank());
    const std::string& option = settings.option_at(&list).name;
    const ByRank<std::int64_t> for_all(otherwise);
    return world.all_gather(own_choice(world, option, list.is_empty() ? for_all : list, place));
}

// NCCL rounds each time that a sum goes from GPU to GPU. Simulated, a sum over 8 ranks errs by 0.4
// % then, over 32 by 0.7 %.
constexpr std::int64_t most_rounding_gpus = 8;

void check_reduce_precision(const RunSettings& settings) {
    if (!sent_type(settings))
        return;
    if (settings.precision == Precision::fp64)
        throw BadConfig(
            "--reduce-precision " + settings.options().reduce_precision + " with --precision fp64",
            "gradients in fp64 would lose what fp64 is for",
            "leave one of them out");
    const auto gpus = std::count_if(settings.topology.ranks.begin(),
                                    settings.topology.ranks.end(),
                                    [](const RankInfo& info) { return info.has_gpu(); });
    if (gpus > most_rounding_gpus)
        log::warn(
            "--reduce-precision bf16 on " + std::to_string(gpus) +
            " GPUs: NCCL rounds a sum on each of them; compare a validation loss with fp32's");
}

void settle_precision(const HostComm& world, RunSettings& settings) {
    const ByRank<PrecisionChoice>& list = settings.options().precision;
    const PrecisionChoice choice = own_value(world, settings, list);
    settings.precision = agree_on(world, [&] {
        return rank_precision(choice, settings.topology.rank(world.rank()), settings.device);
    });
    for (const std::int64_t number :
         world.all_gather(static_cast<std::int64_t>(settings.precision)))
        settings.precisions.push_back(static_cast<Precision>(number));
    agree_on(world, [&] {
        check_precisions(settings.precisions);
        check_reduce_precision(settings);
    });
    settings.settle(
        list, std::vector<PrecisionChoice>(settings.precisions.begin(), settings.precisions.end()));
    compute_in(settings.precision);
}

void settle_recomputation(const HostComm& world, RunSettings& settings) {
    constexpr std::int64_t at_need = -1;
    const ByRank<RecomputeChoice>& list = settings.options().recompute;
    const RecomputeChoice own = own_value(world, settings, list);
    for (const std::int64_t layers : world.all_gather(own.value_or(at_need)))
        settings.recompute.push_back(layers == at_need ? std::nullopt : RecomputeChoice(layers));
    settings.settle(list, settings.recompute);
}

void settle_shards(const HostComm& world, RunSettings& settings) {
    const ByRank<ShardPart>& list = settings.options().shard_by;
    const ShardPart own = own_value(world, settings, list);
    const auto kinds = world.all_gather(static_cast<std::int64_t>(own.by));
    const auto numbers = world.all_gather(own.number);
    for (std::size_t r = 0; r < kinds.size(); ++r)
        settings.shard_by.push_back({static_cast<ShardPart::By>(kinds[r]), numbers[r]});
    settings.settle(list, settings.shard_by);
}

std::string capacity_option(const RunSettings& settings) {
    return settings.option_at(&settings.capacity_list()).name;
}

constexpr std::int64_t any_length = 0;
constexpr std::int64_t default_samples = 32;            // of a micro-batch
constexpr std::int64_t largest_number = 1'000'000'000;  // no micro-batch has so many samples

void settle_capacities(const HostComm& world, RunSettings& settings) {
    const Options& options = settings.options();
    const ByRank<std::int64_t>& sentences = options.max_sentences;
    if (settings.is_ragged()) {
        settings.capacities = numbers_by_rank(world, settings, options.max_tokens);
        // One rank's command line may have it alone.
        const auto given = world.all_reduce(std::int64_t{!sentences.is_empty()}, ReduceOp::max);
        if (given > 0)
            settings.max_samples = numbers_by_rank(world, settings, sentences, largest_number);
        for (std::size_t r = 0; r < settings.max_samples.size(); ++r)
            if (settings.max_samples[r] == 0)
                settings.capacities[r] = 0;
        settings.settle(sentences, settings.max_samples);
    } else {
        settings.capacities = numbers_by_rank(world, settings, sentences, default_samples);
    }
    settings.settle(settings.capacity_list(), settings.capacities);
}

std::int64_t total_capacity(const RunSettings& settings) {
    return std::accumulate(settings.capacities.begin(), settings.capacities.end(), std::int64_t{0});
}

// The options that leave the ranks without work. With samples of unequal length either may.
std::string zero_capacities(const RunSettings& settings) {
    const std::vector<std::int64_t>& samples = settings.max_samples;
    const auto zeros = std::count(samples.begin(), samples.end(), 0);
    if (zeros == 0)
        return "--" + capacity_option(settings);
    return zeros == std::ssize(samples) ? "--max-sentences" : "--max-sentences or --max-tokens";
}

void check_batch_options(const RunSettings& settings) {
    const Options& options = settings.options();
    constexpr std::int64_t largest = 1'000'000'000;
    const std::string capacity = "--" + capacity_option(settings);
    if (total_capacity(settings) > largest / options.update_freq)
        throw BadConfig("the global batch is larger than " + std::to_string(largest),
                        "the sum of " + capacity + " times --update-freq",
                        "lower either");
    if (options.batch_size > 0 && options.batch_tokens > 0)
        throw BadConfig("--batch-size and --batch-tokens were both given",
                        "each fixes the global batch",
                        "give one of them");
    const bool is_given = options.batch_size > 0 || options.batch_tokens > 0;
    if (is_given && options.update_freq > 1)
        throw BadConfig(std::string(options.batch_size > 0 ? "--batch-size" : "--batch-tokens") +
                            " and --update-freq were both given",
                        "each fixes the global batch",
                        "give one of them");
    if (total_capacity(settings) == 0)
        throw BadConfig("no rank takes any work",
                        zero_capacities(settings) + " is 0 on all of them",
                        "give at least one rank a capacity");
    if (!settings.is_ragged() && options.batch_tokens > 0)
        throw BadConfig("--batch-tokens was given",
                        "the samples of --dataset " + options.dataset + " have one shape",
                        "give --batch-size");
    if (settings.counts_samples() && options.batch_tokens > 0)
        log::warn("--batch-tokens " + std::to_string(options.batch_tokens) +
                  " counts samples (the task names no field whose tokens are counted): give "
                  "--batch-size, or name the field in the task (tokens)");
}

// Every sample must fit every rank that works. Micro-batches of stages that are given may be
// smaller than a sample, which is then one by itself: a plan has made them so.
void settle_length(RunSettings& settings) {
    std::int64_t smallest = 0;
    for (const std::int64_t tokens : settings.capacities)
        if (tokens > 0 && (smallest == 0 || tokens < smallest))
            smallest = tokens;
    const Options& options = settings.options();
    const std::int64_t length = options.max_length;
    const bool is_cut = options.virtual_workers != "none" && options.stage_units != "auto";
    if (length > smallest && !is_cut)
        throw BadConfig("--max-length " + std::to_string(length) + " is above --max-tokens",
                        "a rank's micro-batches hold " + std::to_string(smallest) + " tokens",
                        "raise --max-tokens or lower --max-length");
    settings.corpus.max_length = length > 0                                ? length
                                 : is_cut && !options.corpus.skip_too_long ? any_length
                                                                           : smallest;
    // What is left out belongs to the run, on other ranks too.
    if (options.corpus.skip_too_long)
        settings.settle(settings.options().max_length, settings.corpus.max_length);
}

// Options of unequal lengths, where all samples have one shape.
void warn_of_lengths(const Options& options) {
    for (const auto& [option, is_given] :
         {std::pair{"--max-length", options.max_length > 0},
          std::pair{"--skip-too-long", options.corpus.skip_too_long}})
        if (is_given)
            log::warn(std::string(option) + " has no effect (the samples of --dataset " +
                      options.dataset + " have one shape): leave it out");
}

constexpr double filled = 0.9;  // of the micro-batches, about: the rest is padding

// Of the ranks that work, where their capacities are tokens and the batch is of samples.
std::int64_t samples_of_capacities(const RunSettings& settings) {
    std::int64_t sum = 0;
    for (std::size_t r = 0; r < settings.capacities.size(); ++r) {
        const std::int64_t most =
            settings.max_samples.empty() ? largest_number : settings.max_samples[r];
        if (settings.capacities[r] > 0)
            sum += most == largest_number ? default_samples : most;
    }
    return sum;
}

void settle_batch(RunSettings& settings) {
    check_batch_options(settings);
    const Options& options = settings.options();
    const std::int64_t capacity = total_capacity(settings) * options.update_freq;
    if (settings.is_ragged())
        settle_length(settings);
    else
        warn_of_lengths(options);
    if (options.batch_size == 0 && options.batch_tokens == 0) {
        if (settings.counts_samples())
            settings.settle(options.batch_size,
                            samples_of_capacities(settings) * options.update_freq);
        else if (settings.is_ragged())
            settings.settle(options.batch_tokens,
                            static_cast<std::int64_t>(filled * static_cast<double>(capacity)));
        else
            settings.settle(options.batch_size, capacity);
    }
    settings.settle(options.update_freq, 1);
}

void set_threads(const HostComm& world, RunSettings& settings) {
    const std::vector<std::int64_t> asked =
        numbers_by_rank(world, settings, settings.options().threads);
    const ThreadChoice choice =
        choose_threads(settings.topology.rank(world.rank()),
                       settings.topology.ranks_on_host_of(world.rank()),
                       static_cast<int>(asked[static_cast<std::size_t>(world.rank())]));
    if (!choice.warning.empty())
        log::warn_here(choice.warning);
    at::set_num_threads(choice.threads);
    settings.threads = world.all_gather(static_cast<std::int64_t>(choice.threads));
    settings.settle(settings.options().threads, asked);
}

void set_cache(const HostComm& world, RunSettings& settings) {
    const std::vector<std::int64_t> sizes =
        numbers_by_rank(world, settings, settings.options().cache_mb);
    settings.corpus.cache_mb = sizes[static_cast<std::size_t>(world.rank())];
    settings.settle(settings.options().cache_mb, sizes);
}

std::int64_t measured_up_to(const RunSettings& settings, std::int64_t capacity) {
    return settings.is_ragged() ? capacity : std::min(capacity, settings.options().batch_size);
}

// `memory`: how much of it, after a comma; empty where that does not matter.
std::string limits(const RunSettings& settings, int rank, const std::string& memory) {
    const RankInfo& info = settings.topology.rank(rank);
    const auto r = static_cast<std::size_t>(rank);
    const auto sharing = std::count_if(
        settings.topology.ranks.begin(), settings.topology.ranks.end(), [&](const RankInfo& other) {
            return info.has_gpu() && other.device_uuid == info.device_uuid;
        });
    return format_number(info.cpu_share, 3) + " cores" + memory + ", threads " +
           std::to_string(settings.threads[r]) + narrow_words(settings.precisions[r]) +
           (settings.recompute[r] ? ", recompute " + choice_text(settings.recompute[r]) : "") +
           ", measured up to " + std::to_string(measured_up_to(settings, settings.capacities[r])) +
           " of " + std::to_string(settings.capacities[r]) +
           (settings.is_ragged() ? " tokens" : " samples") +
           (sharing > 1 ? ", a device of " + std::to_string(sharing) + " ranks" : "");
}

}  // namespace

void SettledOptions::settle(const std::string& place, std::string text) {
    settle_text(&place, std::move(text));
}

void SettledOptions::settle(const std::int64_t& place, std::string text) {
    settle_text(&place, std::move(text));
}

void SettledOptions::settle(const std::int64_t& place, std::int64_t value) {
    settle_text(&place, std::to_string(value));
}

bool RunSettings::lacks_cores(int rank) const {
    constexpr double rounding = 1e-6;
    return device.is_cpu() && static_cast<double>(threads[static_cast<std::size_t>(rank)]) >
                                  topology.rank(rank).cpu_share + rounding;
}

bool RunSettings::has_core_to_spare(int rank) const {
    const RankInfo& info = topology.rank(rank);
    return info.has_gpu() ||
           info.cpu_share >= static_cast<double>(threads[static_cast<std::size_t>(rank)] + 1);
}

bool RunSettings::recomputes_at_need(int rank) const {
    return !recompute[static_cast<std::size_t>(rank)];
}

void SettledOptions::settle_text(const void* place, std::string text) {
    values_.at(option_at(place).name) = std::move(text);
    options_ = typed_options(values_, table_);
}

const OptionSpec& SettledOptions::option_at(const void* place) const {
    return run_options().at(options_, place);
}

SettledOptions settle_options(const HostComm& world,
                              const GivenOptions& given,
                              const Parts& parts) {
    const OptionValues values = agree_on(world, [&] { return merged_values(given, parts); });
    const OptionTable table = options_in_use(parts, values);
    agree_on_options(world, values, table);
    return agree_on(world, [&] {
        SettledOptions settled(values, table);
        check_parts(settled.options(), parts);
        return settled;
    });
}

RunSettings set_up_ranks(const HostComm& world,
                         SettledOptions settled,
                         const Parts& parts,
                         const RankInfo* before) {
    RunSettings settings{std::move(settled)};
    const Options& options = settings.options();
    settings.schema =
        agree_on(world, [&] { return parts.datasets.get(options.dataset)(options.parts); });
    settings.topology = discover_devices(world, options, before);
    settings.device = at::Device(settings.topology.rank(world.rank()).device);
    settle_precision(world, settings);
    settle_recomputation(world, settings);
    settle_shards(world, settings);
    settings.corpus = settings.options().corpus;
    settle_capacities(world, settings);
    settle_batch(settings);
    set_threads(world, settings);
    set_cache(world, settings);
    return settings;
}

std::optional<at::ScalarType> sent_type(const RunSettings& settings) {
    const bool is_narrow = settings.options().reduce_precision == "bf16";
    return is_narrow && settings.topology.ranks.size() > 1 ? std::optional(at::kBFloat16)
                                                           : std::nullopt;
}

std::string rank_limits(const RunSettings& settings, int rank) {
    return limits(
        settings, rank, ", " + std::to_string(settings.topology.rank(rank).memory_mb) + " MiB");
}

std::string rough_rank_limits(const RunSettings& settings, int rank) {
    constexpr double steps_of_octave = 32;
    const auto mb = static_cast<double>(settings.topology.rank(rank).memory_mb);
    const double step = std::round(steps_of_octave * std::log2(std::max(1.0, mb)));
    return limits(
        settings,
        rank,
        ", about " + std::to_string(std::llround(std::exp2(step / steps_of_octave))) + " MiB");
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

}  // namespace hetseq
