#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/command_line/option_parser.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/comm/reduce_benchmark.hpp"
#include "hetseq/data/data_benchmark.hpp"
#include "hetseq/data/order/micro_batch_cap.hpp"
#include "hetseq/train/record/statistics.hpp"
#include "hetseq/train/record/summary.hpp"
#include "hetseq/session/options/option_name.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/session/step_counts.hpp"
#include "hetseq/session/training.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"
#include "hetseq/app/process.hpp"

#include "app/commands/command_options.hpp"
#include "roofline_report.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

void print(const HostComm& world, const Json& result) {
    if (world.rank() == 0)
        std::puts(json_text(result, 2).c_str());
}

Json spread_json(const Distribution& values) {
    const Spread spread = values.spread();
    return {{"median", spread.median}, {"p10", spread.p10}, {"p90", spread.p90}};
}

std::vector<std::string> precision_texts(const std::vector<Precision>& precisions) {
    std::vector<std::string> texts;
    for (const Precision precision : precisions)
        texts.push_back(to_string(precision));
    return texts;
}

std::vector<std::int64_t> recomputed_layers(const Summary& summary) {
    std::vector<std::int64_t> layers;
    for (const Summary::Rank& rank : summary.ranks)
        layers.push_back(rank.recomputed_layers);
    return layers;
}

Json measure_step(const HostComm& world,
                  const RunSettings& settings,
                  const Replica& replica,
                  Training& training) {
    const TrainerReport report = training.run(process_start_seconds());
    const Summary summary = summarise(world,
                                      settings.topology,
                                      settings.precisions,
                                      training.shares(),
                                      training.shares().full_batch(replica.plan()),
                                      report,
                                      process_start_seconds());
    const TimeDistributions times = report.times.steady();
    Json json{{"bench", "step"},
              {"task", settings.options().task},
              {"ranks", world.size()},
              {"threads", settings.threads},
              {"precision", precision_texts(settings.precisions)},
              {"recomputed_layers", recomputed_layers(summary)},
              {"reduce_precision", settings.options().reduce_precision},
              {"batch_size", settings.options().batch_size},
              {"batch_tokens", settings.options().batch_tokens},
              {"updates", report.updates},
              {"samples_per_second", spread_json(times.samples_per_second)},
              {"units_per_second", spread_json(times.units_per_second)},
              {"padding", summary.padding},
              {"step_ms", spread_json(times.step_ms)}};
    for (const RankTimeText& text : rank_time_texts)
        json[std::string(text.key)] = spread_json(times.by_time[text.time]);
    json["finish_wait_over_last_bucket"] = summary.finish_ratio;
    json["startup_s"] = summary.startup_s;
    return json;
}

// Trains without leaving anything behind.
int bench_step(const CommandContext& context, const RunSettings& settings) {
    if (settings.options().virtual_workers != "none")
        throw BadConfig("bench step with --virtual-workers",
                        "it measures ranks that have a replica each",
                        "use hetseq train --dry-run, which measures stages");
    const HostComm& world = context.world;
    Replica replica(*context.environment, world, settings, context.parts, nullptr);
    const StartingPoint start;
    const RunLength length =
        run_length(settings.options(), replica.plan().batches_per_epoch(), start);
    Schedule schedule = make_schedule(context.parts, settings.options().parts, length);
    Training training({world, settings, std::move(schedule), nullptr, replica},
                      length,
                      start,
                      make_starting_shares(world, settings, replica, start));
    return run_or_end(context.meeting,
                      [&] { print(world, measure_step(world, settings, replica, training)); });
}

// What a micro-batch of this rank may hold.
MicroBatchCap read_cap(const RunSettings& settings, const HostComm& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    if (!settings.is_ragged())
        return {.samples = settings.capacities[rank]};
    return {settings.max_samples.empty() ? MicroBatchCap::none : settings.max_samples[rank],
            settings.capacities[rank]};
}

int bench_data(const CommandContext& context, const RunSettings& settings) {
    DataContext data(context.world,
                     context.environment->thread_support() == ThreadSupport::multiple);
    return run_or_end(context.meeting, [&] {
        const DataBenchmark result = benchmark_data(context.world,
                                                    data,
                                                    required_data(settings.options()),
                                                    settings.schema,
                                                    {.corpus = settings.corpus,
                                                     .batch = settings.batch_size(),
                                                     .capacities = settings.capacities,
                                                     .cap = read_cap(settings, context.world)});
        print(context.world,
              {{"bench", "data"},
               {"ranks", context.world.size()},
               {"batch_size", settings.options().batch_size},
               {"batch_tokens", settings.options().batch_tokens},
               {"samples", result.samples},
               {"bytes", result.bytes},
               {"blocks", result.blocks},
               {"open_s", result.open_s},
               {"read_per_second_and_rank", result.read_per_second},
               {"cached_per_second_and_rank", result.cached_per_second},
               {"read_cpu_s", result.read_cpu_s},
               {"cached_cpu_s", result.cached_cpu_s}});
    });
}

Json size_json(const ReduceBenchmark& size) {
    const auto spread = [](const TimeSpread& time) {
        return Json{{"median", time.median}, {"p10", time.p10}, {"p90", time.p90}};
    };
    return {{"bytes", size.bytes},
            {"repeats", size.repeats},
            {"own_ms", spread(size.own_ms)},
            {"mpi_allreduce_ms", size.mpi_ms ? spread(*size.mpi_ms) : Json(nullptr)},
            {"mpi_allreduce_over_own", size.mpi_ms ? Json(size.ratio) : Json(nullptr)},
            {"algorithm_gb_s", size.algorithm_gb_s},
            {"bus_gb_s", size.bus_gb_s}};
}

int bench_reduce(const CommandContext& context, const RunSettings& settings) {
    const auto communicator =
        make_communicator(context.world, *context.environment, settings.device);
    return run_or_end(context.meeting, [&] {
        Json results = Json::array();
        for (const ReduceBenchmark& size : benchmark_all_reduce(context.world, *communicator))
            results.push_back(size_json(size));
        print(context.world,
              {{"bench", "reduce"}, {"ranks", context.world.size()}, {"sizes", results}});
    });
}

// The GPUs that --device names; all that are known without it.
std::span<const GpuPeaks> chosen_gpus(const CommandWords& words) {
    const std::span<const GpuPeaks> all = gpu_peaks();
    const std::string name = words.read(roofline_options()).device;
    if (name.empty())
        return all;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const GpuPeaks& gpu) { return gpu.name == name; });
    return all.subspan(static_cast<std::size_t>(found - all.begin()), 1);
}

void check_alone(const HostComm& world) {
    if (world.size() > 1)
        throw BadConfig(std::to_string(world.size()) + " ranks were started",
                        "a rank's operators are counted, and each does the same",
                        "start it without mpirun, or with mpirun -np 1");
}

void check_among_others(const HostComm& world) {
    if (world.size() == 1)
        throw BadConfig("there is one rank",
                        "a reduction takes at least two",
                        "start it with mpirun -np N hetseq bench reduce");
}

// What all ranks, of which there is one, are asked to compute in.
Precision one_precision(const Options& options) {
    const PrecisionChoice choice = options.precision.for_all().value_or(std::nullopt);
    if (!choice)
        throw BadConfig("--precision " + options.precision.text() + " for a roofline",
                        "operators are counted in one precision, for each GPU that has it",
                        "give one of " + join(precision_words(), ", "));
    return *choice;
}

std::vector<GpuPeaks> able_gpus(std::span<const GpuPeaks> gpus, Precision precision) {
    std::vector<GpuPeaks> able;
    std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(able), [&](const GpuPeaks& gpu) {
        return peak_tflops(gpu, precision) > 0;
    });
    return able;
}

// Those of `gpus` that compute in `precision`.
std::vector<GpuPeaks> chosen_able_gpus(std::span<const GpuPeaks> gpus, Precision precision) {
    std::vector<GpuPeaks> able = able_gpus(gpus, precision);
    if (!able.empty())
        return able;
    std::vector<std::string> others;
    for (const GpuPeaks& gpu : able_gpus(gpu_peaks(), precision))
        others.push_back(gpu.name);
    throw BadConfig("--precision " + to_string(precision) + " --device " + gpus.front().name,
                    "the device does not compute in it",
                    "give another precision, or --device " + join(others, " or "));
}

int bench_roofline(const CommandContext& context, SettledOptions settled) {
    const auto [precision, gpus] = agree_on(context.world, [&] {
        const Precision asked = one_precision(settled.options());
        return std::pair(asked, chosen_able_gpus(chosen_gpus(context.words), asked));
    });
    settled.settle(settled.options().precision,
                   std::vector<PrecisionChoice>{computed_on_cpu(precision)});
    const RunSettings settings = set_up_ranks(context.world, std::move(settled), context.parts);
    Replica replica(*context.environment, context.world, settings, context.parts, nullptr);
    return run_or_end(context.meeting, [&] {
        StepCounts counts = count_step(settings, replica);
        count_as(precision, counts);
        Json result{{"bench", "roofline"},
                    {"note", "lower bounds from counts and data sheets; no device was measured"},
                    {"task", settings.options().task},
                    {"precision", to_string(precision)}};
        result.update(roofline_json(counts, precision, gpus));
        print(context.world, result);
    });
}

using Bench = int (*)(const CommandContext&, const RunSettings&);

const std::map<std::string, Bench>& bench_kinds() {
    static const std::map<std::string, Bench> kinds{
        {"data", bench_data}, {"step", bench_step}, {"reduce", bench_reduce}};
    return kinds;
}

// In small batches of rows of one shape, more of the time would be the loader's than the reader's.
void settle_read_size(SettledOptions& settled, const Parts& parts) {
    const Options& options = settled.options();
    const CorpusSchema schema = parts.datasets.get(options.dataset)(options.parts);
    if (options.max_sentences.is_empty() && ragged_fields(schema).empty())
        settled.settle(options.max_sentences, std::vector<std::int64_t>{256});
}

}  // namespace

int bench_command(const CommandContext& context) {
    const HostComm& world = context.world;
    GivenOptions given =
        agree_on(world, [&] { return given_options(context.words, option_table(context.parts)); });
    if (context.words.form == "reduce") {
        agree_on(world, [&] { check_among_others(world); });
        given.line[option_name(any_options().task)] =
            context.parts.tasks.names().front();  // any: only ranks and devices matter
    }
    if (context.words.form == "roofline") {
        agree_on(world, [&] {
            chosen_gpus(context.words);
            check_alone(world);
        });
        given.line[option_name(any_options().device)] = choice_text(DeviceChoice::cpu);
    }
    SettledOptions settled = settle_options(world, given, context.parts);
    if (context.words.form == "data")
        agree_on(world, [&] { settle_read_size(settled, context.parts); });
    if (context.words.form == "roofline")
        return bench_roofline(context, std::move(settled));
    const RunSettings settings = set_up_ranks(world, std::move(settled), context.parts);
    return bench_kinds().at(context.words.form)(context, settings);
}

}  // namespace hetseq
