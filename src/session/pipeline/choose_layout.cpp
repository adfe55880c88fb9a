#include "hetseq/session/pipeline/choose_layout.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/zeros.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/train/pipeline/link_costs.hpp"
#include "hetseq/train/shares/peak_memory.hpp"
#include "hetseq/train/shares/update_cost.hpp"
#include "hetseq/session/pipeline/virtual_workers.hpp"
#include "hetseq/session/ranks/rank_memory.hpp"
#include "hetseq/session/ranks/rank_recomputation.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"

#include "best_layout.hpp"
#include "chain_measurement.hpp"
#include "chain_memory.hpp"
#include "layout_problem.hpp"
#include "measured_ranks.hpp"
#include "rank_classes.hpp"
#include "sum_costs.hpp"
#include "tied_units.hpp"

namespace hetseq {

namespace {

// Of a stage without such layers it asks for nothing, but the model must have some.
void check_recomputation(const RunSettings& settings, const Model& model) {
    const std::vector<ChainUnit> chain = model.chain();
    if (std::any_of(chain.begin(), chain.end(), [](const auto& unit) { return unit.recomputes; }))
        return;
    for (const std::string& word : settings.recompute)
        recomputed_from_start(word, model);
}

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
    check_recomputation(settings, *model);
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

// As --stage-units says.
PipelineLayout checked_layout(const RunSettings& settings,
                              const std::vector<std::vector<int>>& workers,
                              const std::vector<StageUnits>& stages,
                              std::size_t of_model) {
    const std::string& text = settings.options().stage_units;
    if (stages.size() != workers.size())
        throw BadConfig(
            "--stage-units " + text + " is for " + count_text(std::ssize(stages), "virtual worker"),
            "there " + std::string(workers.size() == 1 ? "is " : "are ") +
                std::to_string(workers.size()),
            "give the units of each, separated by commas, or auto");
    PipelineLayout layout;
    for (std::size_t w = 0; w < workers.size(); ++w) {
        const std::vector<std::size_t>& units = stages[w].units;
        const std::size_t sum = std::accumulate(units.begin(), units.end(), std::size_t{0});
        if (sum != of_model)
            throw BadConfig("--stage-units " + text + " has " +
                                count_text(std::ssize(units), "stage") + " of " +
                                std::to_string(sum) + " units together",
                            "the model has " + std::to_string(of_model),
                            "give numbers with that sum, or auto");
        if (units.size() != workers[w].size())
            throw BadConfig(
                "--stage-units " + text + " has " + count_text(std::ssize(units), "stage"),
                "the virtual worker has " + count_text(std::ssize(workers[w]), "rank"),
                "give a number for each of its ranks, or auto");
        layout.workers.push_back(given_worker(
            workers[w], units, capacity_of(settings, workers[w]), stages[w].extra_in_flight));
    }
    return layout;
}

std::vector<std::string> hosts_of(const Topology& topology) {
    std::vector<std::string> hosts;
    for (const RankInfo& rank : topology.ranks)
        hosts.push_back(rank.host);
    return hosts;
}

std::vector<int> all_ranks(const HostComm& world) {
    std::vector<int> all(static_cast<std::size_t>(world.size()));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

// Collective. [from][to].
std::vector<std::vector<LinkCost>> measured_links(const MpiEnvironment& environment,
                                                  const HostComm& world,
                                                  const RunSettings& settings) {
    std::vector<int> others = all_ranks(world);
    others.erase(others.begin() + world.rank());
    PeerChannel channel{world, others, settings.device, environment.thread_support(), {}};
    return measure_links(world, channel, settings.device, hosts_of(settings.topology));
}

// Collective. By rank: the optimizer's step, and the norm [ms a MiB of values].
std::vector<double> optimizer_ms_per_mb(const HostComm& world,
                                        const RunSettings& settings,
                                        const Parts& parts) {
    constexpr std::int64_t elements = std::int64_t{1} << 21;
    return world.all_gather(agree_on(world, [&] {
        TensorRegistry some;
        some.register_parameter(
            "values",
            at::zeros(
                {elements},
                at::TensorOptions(parameter_type(settings.precision)).device(settings.device)));
        const FlatParameters values{some, [](const std::string&) { return true; }};
        const PartOptions& options = settings.options().parts;
        const UpdateCost cost = measure_update(values, [&](FlatParameters& parameters) {
            return parts.optimizers.get(options.optimizer.name)(parameters, options);
        });
        return cost.ms / (static_cast<double>(values.values().nbytes()) / bytes_of_mib);
    }));
}

// Collective. What is measured, and chosen by it.
class LayoutMeasurement {
public:
    LayoutMeasurement(const MpiEnvironment& environment,
                      const HostComm& world,
                      const RunSettings& settings,
                      const Parts& parts,
                      Model& model,
                      bool saves)
        : environment_{environment},
          world_{world},
          settings_{settings},
          parts_{parts},
          model_{model},
          saves_{saves},
          data_{world, environment.thread_support() == ThreadSupport::multiple},
          feed_{data_, required_data(settings.options()), settings, parts, model, Shuffle::yes} {}

    // `ranks`: of those that may work.
    LayoutChoice best(const std::vector<int>& ranks, const AskedLayout& asked) {
        log::info("measuring the units of the model on " + count_text(world_.size(), "rank"));
        const std::vector<MeasuredSize> sizes =
            measure_chain(world_, settings_, feed_, model_, capacity_of(settings_, ranks));
        const CostsBySize costs = gathered_costs(world_, sizes);
        const MeasuredRanks measured = measured_ranks(costs);
        return parse_layout_choice(
            world_.broadcast(agree_on(world_,
                                      [&] {
                                          if (world_.rank() != 0)
                                              return std::string();
                                          const LayoutProblem problem =
                                              layout_problem(settings_, sizes, costs, measured);
                                          return layout_choice_json(best_layout(
                                              problem, asked, sizes, measured, settings_));
                                      }),
                             0));
    }

private:
    MeasuredRanks measured_ranks(const CostsBySize& costs) {
        std::vector<std::vector<LinkCost>> links = measured_links(environment_, world_, settings_);
        const double sums_factor = measured_sum_factor(environment_, world_, settings_, links);
        std::vector<double> optimizer_ms = optimizer_ms_per_mb(world_, settings_, parts_);
        // What libraries have taken as they were used stays, and what was measured with does not.
        PeakMemory::release();
        return {rank_classes(settings_, all_ranks(world_), costs.front()),
                std::move(links),
                memory(),
                trains_up_to(model_),
                tied_units(model_, parameter_type(settings_.precision)),
                settings_.device.is_cpu(),
                std::move(optimizer_ms),
                sums_factor};
    }

    ChainMemory memory() {
        const Options& options = settings_.options();
        const double data_mb = static_cast<double>(feed_.corpus().cache_bytes()) / bytes_of_mib *
                               (options.valid_data.empty() ? 1 : 2) /
                               settings_.topology.ranks_on_host_of(world_.rank());
        return chain_memory(world_,
                            settings_,
                            parts_,
                            model_,
                            {memory_in_use_mb(settings_.device), data_mb},
                            saves_);
    }

    const MpiEnvironment& environment_;
    const HostComm& world_;
    const RunSettings& settings_;
    const Parts& parts_;
    Model& model_;
    bool saves_;
    DataContext data_;
    Feed feed_;
};

std::vector<int> joined(const std::vector<std::vector<int>>& workers) {
    std::vector<int> ranks;
    for (const std::vector<int>& worker : workers)
        ranks.insert(ranks.end(), worker.begin(), worker.end());
    return ranks;
}

}  // namespace

LayoutChoice choose_layout(const MpiEnvironment& environment,
                           const HostComm& world,
                           const RunSettings& settings,
                           const Parts& parts,
                           bool saves) {
    const Options& options = settings.options();
    if (options.virtual_workers == "none")
        return {.ranks = all_ranks(world)};
    AskedLayout asked;
    const std::shared_ptr<Model> model = agree_on(world, [&] {
        asked.workers = ranks_of_workers(options.virtual_workers, settings.topology);
        const std::vector<StageUnits> units = parse_stage_units(options.stage_units);
        std::shared_ptr<Model> cut = chain_model(settings, parts);
        if (!units.empty())
            asked.given = checked_layout(settings, asked.workers, units, cut->chain().size());
        return cut;
    });
    const std::vector<int> ranks = joined(asked.workers);
    // Shares follow from times; one worker has every batch whole.
    if (asked.given && (asked.workers.size() == 1 || options.balance.policy != "auto"))
        return {.pipelines = asked.given, .ranks = asked.given->ranks()};
    if (options.virtual_workers == "auto" && world.size() == 1)
        return {.ranks = ranks};
    if (options.virtual_workers == "auto")
        asked.workers.clear();
    return LayoutMeasurement(environment, world, settings, parts, *model, saves).best(ranks, asked);
}

}  // namespace hetseq
