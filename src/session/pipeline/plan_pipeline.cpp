#include "hetseq/session/pipeline/plan_pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"
#include "hetseq/balance/pipeline/partition_chain.hpp"
#include "hetseq/balance/pipeline/simulate_pipeline.hpp"
#include "hetseq/balance/usable_memory.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/train/pipeline/link_costs.hpp"
#include "hetseq/train/shares/peak_memory.hpp"
#include "hetseq/session/pipeline/virtual_workers.hpp"
#include "hetseq/session/ranks/rank_memory.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"

#include "chain_measurement.hpp"
#include "chain_memory.hpp"
#include "rank_classes.hpp"

namespace hetseq {

namespace {

constexpr double bytes_of_cache_mib = 1 << 20;
// What a CPU's memory holds for what is kept from forward to backward. Micro-batches differ in
// size, and are freed in another order than they were made in: so gaps stay between their tensors.
// BERT 8 x 512 took 1.5 to 1.9 of it.
constexpr double with_gaps = 1.5;

std::shared_ptr<Model> chain_model(const RunSettings& settings, const Parts& parts) {
    const Options& options = settings.options();
    std::shared_ptr<Model> model = parts.models.get(options.model)(options.parts);
    if (model->chain().empty())
        throw BadConfig("--virtual-workers with --model " + options.model,
                        "the model is not a chain of units that stages could compute",
                        "use none, or another model: BERT, the Transformer, MNIST's network, and "
                        "tasks in Python that name their blocks (chain) can be cut");
    if (options.shard != "none")
        throw BadConfig("--virtual-workers with --shard " + options.shard,
                        "each stage holds its parameters' state alone: nothing is left to cut",
                        "leave --shard out");
    if (!model->scores().empty() && model->scores_need_whole_model() && !options.valid_data.empty())
        throw BadConfig(
            "--virtual-workers with validation that gives " + join(model->scores(), ", "),
            "that needs the whole model, which no rank has",
            "leave --valid-bleu out, and score what the finished model translates");
    if (options.parts.optimizer.name == "python")
        throw BadConfig("--virtual-workers with an optimizer of the task's own",
                        "it knows all of the module, of which each rank holds a stage alone",
                        "leave out the task's method 'optimizer', and take one of adam, adamw, "
                        "lamb, sgd and adadelta");
    model->hold({0, 0});
    return model;
}

// The smallest of them: each stage has every micro-batch.
std::int64_t capacity_of(const RunSettings& settings, const std::vector<int>& ranks) {
    std::int64_t least = 0;
    for (const int rank : ranks) {
        const std::int64_t own = settings.capacities[static_cast<std::size_t>(rank)];
        least = own > 0 && (least == 0 || own < least) ? own : least;
    }
    return least;
}

ChainCut cut_of(const std::vector<ChainStage>& stages, std::size_t extra_in_flight) {
    ChainCut cut;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        cut.units.push_back({stages[s].begin, stages[s].end});
        cut.most_in_flight.push_back(most_in_flight(stages.size(), s, extra_in_flight));
    }
    return cut;
}

PipelineLayout checked_layout(const RunSettings& settings,
                              const std::vector<int>& ranks,
                              const std::vector<std::size_t>& units,
                              std::size_t of_model) {
    const std::size_t sum = std::accumulate(units.begin(), units.end(), std::size_t{0});
    const std::string& text = settings.options().stage_units;
    if (sum != of_model)
        throw BadConfig("--stage-units " + text + " has " + count_text(std::ssize(units), "stage") +
                            " of " + std::to_string(sum) + " units together",
                        "the model has " + std::to_string(of_model),
                        "give numbers with that sum, or auto");
    if (units.size() != ranks.size())
        throw BadConfig("--stage-units " + text + " has " + count_text(std::ssize(units), "stage"),
                        "the virtual worker has " + count_text(std::ssize(ranks), "rank"),
                        "give a number for each of its ranks, or auto");
    return given_layout(ranks, units, capacity_of(settings, ranks));
}

// The mean over pairs of unlike ranks.
ChainLink link_between(const std::vector<std::vector<LinkCost>>& links,
                       const std::vector<int>& from,
                       const std::vector<int>& to) {
    ChainLink sum;
    double pairs = 0;
    for (const int a : from)
        for (const int b : to)
            if (a != b) {
                const LinkCost& cost =
                    links[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
                sum.latency_ms += cost.latency_ms;
                sum.ms_per_mb += cost.ms_per_mb;
                ++pairs;
            }
    return pairs > 0 ? ChainLink{sum.latency_ms / pairs, sum.ms_per_mb / pairs} : ChainLink{};
}

// All ranks' costs of one size, rank after rank, unit after unit.
constexpr std::size_t numbers_a_unit = 5;
std::vector<UnitCost> unpacked(const std::vector<double>& numbers,
                               std::size_t first,
                               std::size_t units) {
    std::vector<UnitCost> costs;
    for (std::size_t u = 0; u < units; ++u) {
        const double* const own = numbers.data() + first + u * numbers_a_unit;
        costs.push_back({own[0], own[1], own[2], own[3], own[4]});
    }
    return costs;
}

std::vector<std::vector<UnitCost>> gathered(const HostComm& world,
                                            const std::vector<UnitCost>& own) {
    const auto ranks = static_cast<std::size_t>(world.size());
    const std::size_t each = own.size() * numbers_a_unit;
    std::vector<double> numbers(ranks * each, 0);
    double* out = numbers.data() + static_cast<std::size_t>(world.rank()) * each;
    for (const UnitCost& cost : own)
        for (const double number :
             {cost.forward_ms, cost.backward_ms, cost.kept_mb, cost.workspace_mb, cost.output_mb})
            *out++ = number;
    world.all_reduce(std::span<double>(numbers), ReduceOp::sum);
    std::vector<std::vector<UnitCost>> all;
    for (std::size_t r = 0; r < ranks; ++r)
        all.push_back(unpacked(numbers, r * each, own.size()));
    return all;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// What is known of all ranks of the worker.
struct Measured {
    RankClasses classes;
    std::vector<std::vector<LinkCost>> links;
    ChainMemory memory;
    std::vector<bool> trains_up_to;  // by unit: any parameter in front of it, or its own
    double of_kept = 1;              // memory that is held for what is kept, over its size
};

ChainProblem problem_of(const Measured& measured,
                        const std::vector<std::vector<UnitCost>>& costs,
                        std::int64_t micro_batches) {
    ChainProblem problem;
    const std::size_t units = costs.front().size();
    problem.micro_batches = static_cast<std::size_t>(micro_batches);
    const auto& classes = measured.classes.ranks;
    const auto over = [&](const std::vector<int>& ranks, std::size_t unit, double UnitCost::*of) {
        std::vector<double> values;
        for (const int rank : ranks)
            values.push_back(costs[static_cast<std::size_t>(rank)][unit].*of);
        return median(values);
    };
    for (const std::vector<int>& ranks : classes) {
        ChainDevices devices{.count = ranks.size()};
        for (std::size_t u = 0; u < units; ++u) {
            devices.forward_ms.push_back(over(ranks, u, &UnitCost::forward_ms));
            devices.backward_ms.push_back(over(ranks, u, &UnitCost::backward_ms));
        }
        devices.memory_mb = usable_memory * measured.memory.has_mb(ranks.front());
        for (const int rank : ranks)
            devices.process_mb = std::max(devices.process_mb, measured.memory.process_mb(rank));
        problem.devices.push_back(std::move(devices));
        auto& links = problem.links.emplace_back();
        for (const std::vector<int>& to : classes)
            links.push_back(link_between(measured.links, ranks, to));
    }
    const auto largest = [&](std::size_t unit, double UnitCost::*of) {
        double most = 0;
        for (const std::vector<int>& ranks : classes)
            most = std::max(most, over(ranks, unit, of));
        return most;
    };
    for (std::size_t u = 0; u < units; ++u) {
        const double output = largest(u, &UnitCost::output_mb);
        problem.activations_mb.push_back(output);
        problem.gradients_mb.push_back(measured.trains_up_to[u] ? output : 0);
        problem.activations_mb_kept.push_back(measured.of_kept * largest(u, &UnitCost::kept_mb));
        problem.workspace_mb.push_back(largest(u, &UnitCost::workspace_mb));
    }
    problem.state_mb = [&](std::size_t begin, std::size_t end, std::size_t device_class) {
        return measured.memory.stage_mb(classes[device_class].front(), {begin, end});
    };
    return problem;
}

// The ranks of the stages: those of a class in their order.
std::vector<int> ranks_of(const PipelineCut& cut, const RankClasses& classes) {
    std::vector<std::size_t> used(classes.ranks.size(), 0);
    std::vector<int> ranks;
    for (const ChainStage& stage : cut.stages)
        ranks.push_back(classes.ranks[stage.device_class][used[stage.device_class]++]);
    return ranks;
}

std::vector<double> activations_of(const PipelineCut& cut,
                                   const Measured& measured,
                                   const std::vector<int>& ranks) {
    std::vector<double> mb;
    for (std::size_t s = 0; s < cut.stages.size(); ++s)
        mb.push_back(std::max(
            0.0,
            cut.memory[s].needed_mb - measured.memory.process_mb(ranks[s]) -
                measured.memory.stage_mb(ranks[s], {cut.stages[s].begin, cut.stages[s].end})));
    return mb;
}

[[noreturn]] void refuse(const PipelineCut& nearest,
                         const Measured& measured,
                         const RunSettings& settings) {
    const std::size_t s = nearest.tightest();
    const RankInfo& info = settings.topology.rank(ranks_of(nearest, measured.classes)[s]);
    const auto whole = [](double mb) { return std::to_string(std::llround(mb)); };
    throw BadConfig("no cut of the model fits the virtual worker's memory: of the nearest, stage " +
                        std::to_string(s) + " of " + std::to_string(nearest.stages.size()) +
                        " would need " + whole(nearest.memory[s].needed_mb / usable_memory) +
                        " MiB of rank " + std::to_string(info.rank) + " on " + info.host,
                    "it has " + whole(nearest.memory[s].usable_mb / usable_memory) + " MiB",
                    "add ranks to the worker, give --recompute all, or use a smaller model");
}

// The best of all sizes of micro-batches. On rank 0 alone, since CPUs round differently.
PipelineLayout best_layout(const std::vector<MeasuredSize>& sizes,
                           const std::vector<std::vector<std::vector<UnitCost>>>& costs,
                           const Measured& measured,
                           const RunSettings& settings) {
    std::optional<PipelineLayout> best;
    std::optional<PipelineCut> nearest;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const ChainProblem problem = problem_of(measured, costs[i], sizes[i].micro_batches);
        const PipelineCut cut = with_more_in_flight(problem, partition_chain(problem));
        if (!cut.fits()) {
            nearest = cut;
            continue;
        }
        if (best && best->predicted_ms <= cut.predicted_ms)
            continue;
        const std::vector<int> ranks = ranks_of(cut, measured.classes);
        best = {.ranks = ranks,
                .cut = cut_of(cut.stages, cut.extra_in_flight),
                .micro_batch = sizes[i].micro_batch,
                .predicted_ms = cut.predicted_ms,
                .bubble = cut.bubble,
                .activations_mb = activations_of(cut, measured, ranks)};
    }
    if (!best)
        refuse(*nearest, measured, settings);
    return *best;
}

// Collective. Rank 0's.
PipelineLayout shared(const HostComm& world, PipelineLayout layout) {
    std::vector<double> numbers{
        static_cast<double>(layout.micro_batch), layout.predicted_ms, layout.bubble};
    for (std::size_t s = 0; s < layout.ranks.size(); ++s)
        for (const double number : {static_cast<double>(layout.ranks[s]),
                                    static_cast<double>(layout.cut.units[s].begin),
                                    static_cast<double>(layout.cut.units[s].end),
                                    static_cast<double>(layout.cut.most_in_flight[s]),
                                    layout.activations_mb[s]})
            numbers.push_back(number);
    numbers.resize(static_cast<std::size_t>(world.broadcast(std::ssize(numbers), 0)));
    world.broadcast(std::as_writable_bytes(std::span(numbers)), 0);
    PipelineLayout all{.ranks = {},
                       .cut = {},
                       .micro_batch = static_cast<std::int64_t>(numbers[0]),
                       .predicted_ms = numbers[1],
                       .bubble = numbers[2]};
    for (std::size_t at = 3; at < numbers.size(); at += 5) {
        const auto number = [&](std::size_t i) {
            return static_cast<std::size_t>(numbers[at + i]);
        };
        all.ranks.push_back(static_cast<int>(numbers[at]));
        all.cut.units.push_back({number(1), number(2)});
        all.cut.most_in_flight.push_back(number(3));
        all.activations_mb.push_back(numbers[at + 4]);
    }
    return all;
}

std::vector<bool> trains_up_to(const Model& model) {
    const NamedTensors parameters = model.named_parameters();
    std::vector<bool> trains;
    bool any = false;
    for (const ChainUnit& unit : model.chain()) {
        for (const std::string& name : unit.parameters)
            any = any || parameters[name].requires_grad();
        trains.push_back(any);
    }
    return trains;
}

}  // namespace

std::optional<PipelineLayout> plan_pipeline(const MpiEnvironment& environment,
                                            const HostComm& world,
                                            const RunSettings& settings,
                                            const Parts& parts,
                                            bool saves) {
    const Options& options = settings.options();
    if (options.virtual_workers == "none")
        return std::nullopt;
    std::vector<int> ranks;
    std::vector<std::size_t> units;
    const std::shared_ptr<Model> model = agree_on(world, [&] {
        ranks = ranks_of_worker(options.virtual_workers, settings.topology);
        units = parse_stage_units(options.stage_units);
        return chain_model(settings, parts);
    });
    if (!units.empty())
        return agree_on(
            world, [&] { return checked_layout(settings, ranks, units, model->chain().size()); });
    DataContext data(world, environment.thread_support() == ThreadSupport::multiple);
    Feed feed(data, required_data(options), settings, parts, *model, Shuffle::yes);
    const auto memory_beside = [&](double process_mb) {
        const double data_mb = static_cast<double>(feed.corpus().cache_bytes()) /
                               bytes_of_cache_mib * (options.valid_data.empty() ? 1 : 2) /
                               settings.topology.ranks_on_host_of(world.rank());
        return chain_memory(world, settings, parts, *model, {process_mb, data_mb}, saves);
    };
    if (options.virtual_workers == "auto" &&
        memory_beside(memory_in_use_mb(settings.device)).every_rank_holds_all()) {
        log::info("no virtual worker is needed: each rank holds the model");
        return std::nullopt;
    }
    log::info("measuring the units of the model on " + count_text(world.size(), "rank"));
    const std::vector<MeasuredSize> sizes =
        measure_chain(world, settings, feed, *model, capacity_of(settings, ranks));
    std::vector<int> all;
    for (int rank = 0; rank < world.size(); ++rank)
        if (rank != world.rank())
            all.push_back(rank);
    PeerChannel channel{world, all, settings.device, environment.thread_support(), {}};
    std::vector<std::vector<LinkCost>> links = measure_links(world, channel, settings.device);
    std::vector<std::vector<std::vector<UnitCost>>> costs;
    for (const MeasuredSize& size : sizes)
        costs.push_back(gathered(world, size.costs));
    // What libraries have taken as they were used stays, and what was measured with does not.
    PeakMemory::release();
    const Measured measured{rank_classes(settings, ranks, costs.front()),
                            std::move(links),
                            memory_beside(memory_in_use_mb(settings.device)),
                            trains_up_to(*model),
                            settings.device.is_cpu() ? with_gaps : 1};
    const PipelineLayout layout = agree_on(world, [&] {
        return world.rank() == 0 ? best_layout(sizes, costs, measured, settings) : PipelineLayout{};
    });
    return shared(world, layout);
}

}  // namespace hetseq
