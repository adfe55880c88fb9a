#include "hetseq/session/pipeline/plan_pipeline.hpp"

#include <algorithm>
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
#include "hetseq/data/data_context.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/train/pipeline/link_costs.hpp"
#include "hetseq/train/shares/peak_memory.hpp"
#include "hetseq/session/pipeline/virtual_workers.hpp"
#include "hetseq/session/ranks/rank_memory.hpp"
#include "hetseq/session/ranks/rank_recomputation.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"

#include "best_layout.hpp"
#include "chain_measurement.hpp"
#include "chain_memory.hpp"
#include "measured_ranks.hpp"
#include "rank_classes.hpp"
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

}  // namespace

std::optional<PipelineLayout> plan_pipeline(const MpiEnvironment& environment,
                                            const HostComm& world,
                                            const RunSettings& settings,
                                            const Parts& parts,
                                            bool saves) {
    const Options& options = settings.options();
    if (options.virtual_workers == "none")
        return std::nullopt;
    std::vector<std::vector<int>> workers;
    std::vector<StageUnits> units;
    const std::shared_ptr<Model> model = agree_on(world, [&] {
        workers = ranks_of_workers(options.virtual_workers, settings.topology);
        units = parse_stage_units(options.stage_units);
        return chain_model(settings, parts);
    });
    if (!units.empty())
        return agree_on(
            world, [&] { return checked_layout(settings, workers, units, model->chain().size()); });
    DataContext data(world, environment.thread_support() == ThreadSupport::multiple);
    Feed feed(data, required_data(options), settings, parts, *model, Shuffle::yes);
    const auto memory_beside = [&](double process_mb) {
        const double data_mb = static_cast<double>(feed.corpus().cache_bytes()) / bytes_of_mib *
                               (options.valid_data.empty() ? 1 : 2) /
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
        measure_chain(world, settings, feed, *model, capacity_of(settings, workers.front()));
    std::vector<int> all;
    for (int rank = 0; rank < world.size(); ++rank)
        if (rank != world.rank())
            all.push_back(rank);
    PeerChannel channel{world, all, settings.device, environment.thread_support(), {}};
    std::vector<std::vector<LinkCost>> links =
        measure_links(world, channel, settings.device, hosts_of(settings.topology));
    const CostsBySize costs = gathered_costs(world, sizes);
    // What libraries have taken as they were used stays, and what was measured with does not.
    PeakMemory::release();
    const MeasuredRanks measured{rank_classes(settings, workers.front(), costs.front()),
                                 std::move(links),
                                 memory_beside(memory_in_use_mb(settings.device)),
                                 trains_up_to(*model),
                                 tied_units(*model, parameter_type(settings.precision)),
                                 settings.device.is_cpu()};
    return best_layout(world, settings, sizes, costs, measured);
}

}  // namespace hetseq
