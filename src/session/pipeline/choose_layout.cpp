#include "hetseq/session/pipeline/choose_layout.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/rank_ranges.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/session/pipeline/virtual_workers.hpp"
#include "hetseq/session/ranks/rank_recomputation.hpp"
#include "hetseq/session/run_settings.hpp"

#include "best_layout.hpp"
#include "layout_measurement.hpp"

namespace hetseq {

namespace {

// Of a stage without such layers it asks for nothing, but the model must have some.
void check_recomputation(const RunSettings& settings, const Model& model) {
    const std::vector<ChainUnit> chain = model.chain();
    if (std::any_of(chain.begin(), chain.end(), [](const auto& unit) { return unit.recomputes; }))
        return;
    for (const RecomputeChoice choice : settings.recompute)
        recomputed_from_start(choice, model);
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
            "leave out what asks for it, --valid-bleu or the task's method metric, and score what the "
            "finished model says");
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
    if (least == 0)
        throw BadConfig("--virtual-workers " + settings.options().virtual_workers,
                        "the most that a micro-batch may hold is 0 on " + name_ranks(ranks),
                        "give one of them a number above 0 in " +
                            std::string(settings.is_ragged() ? "--max-tokens" : "--max-sentences"));
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
                            "give numbers with that sum, each 1 or more, or auto");
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

bool is_cut_of(const PipelineLayout& layout, std::size_t units) {
    return std::all_of(layout.workers.begin(), layout.workers.end(), [&](const auto& worker) {
        return worker.cut.units.back().end == units;
    });
}

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
                           bool saves,
                           const std::optional<LayoutChoice>& recorded) {
    const Options& options = settings.options();
    if (options.virtual_workers == "none")
        return {.ranks = all_ranks(world)};
    if (recorded && !recorded->pipelines)
        return *recorded;
    AskedLayout asked;
    const std::shared_ptr<Model> model = agree_on(world, [&] {
        asked.workers = ranks_of_workers(options.virtual_workers, settings.topology);
        const std::vector<StageUnits> units = parse_stage_units(options.stage_units);
        std::shared_ptr<Model> cut = chain_model(settings, parts);
        if (!units.empty())
            asked.given = checked_layout(settings, asked.workers, units, cut->chain().size());
        return cut;
    });
    if (recorded && is_cut_of(*recorded->pipelines, model->chain().size()))
        return *recorded;
    const std::vector<int> ranks = joined(asked.workers);
    // Shares follow from times; one worker has every batch whole.
    if (asked.given && (asked.workers.size() == 1 || options.balance.policy != "auto"))
        return {.pipelines = asked.given, .ranks = asked.given->ranks()};
    if (options.virtual_workers == "auto" && world.size() == 1)
        return {.ranks = ranks};
    if (options.virtual_workers == "auto")
        asked.workers.clear();
    const std::int64_t capacity = agree_on(world, [&] { return capacity_of(settings, ranks); });
    return measured_layout(environment, world, settings, parts, *model, capacity, asked, saves);
}

}  // namespace hetseq
