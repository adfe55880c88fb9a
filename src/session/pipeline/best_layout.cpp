#include "best_layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/layout/compare_layouts.hpp"
#include "hetseq/balance/layout/plan_workers.hpp"
#include "hetseq/balance/usable_memory.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

// The size whose micro-batches in the problem have so many units.
const MeasuredSize& size_of(const LayoutProblem& problem,
                            const std::vector<MeasuredSize>& sizes,
                            std::int64_t micro_batch) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
        if (problem.sizes[i].micro_batch == micro_batch)
            return sizes[i];
    HETSEQ_ASSERT(!"a size that was not measured");
    return sizes.front();
}

// The problem's micro-batch that is nearest to one of `units`.
std::int64_t nearest_size(const LayoutProblem& problem,
                          const std::vector<MeasuredSize>& sizes,
                          std::int64_t units) {
    std::size_t nearest = 0;
    for (std::size_t i = 1; i < sizes.size(); ++i)
        if (std::llabs(sizes[i].micro_batch - units) <
            std::llabs(sizes[nearest].micro_batch - units))
            nearest = i;
    return problem.sizes[nearest].micro_batch;
}

std::vector<double> activations_of(const WorkerPlan& plan, const MeasuredRanks& measured) {
    std::vector<double> mb;
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
        const int rank = plan.ranks[s];
        const UnitRange units{plan.stages[s].begin, plan.stages[s].end};
        mb.push_back(std::max(0.0,
                              plan.memory[s].needed_mb - measured.memory.process_mb(rank) -
                                  measured.memory.stage_mb(rank, units)));
    }
    return mb;
}

WorkerLayout layout_of(const WorkerPlan& plan,
                       std::int64_t micro_batch,
                       std::size_t extra_in_flight,
                       const MeasuredRanks& measured) {
    std::vector<std::size_t> units;
    for (const ChainStage& stage : plan.stages)
        units.push_back(stage.end - stage.begin);
    WorkerLayout layout = given_worker(plan.ranks, units, micro_batch, extra_in_flight);
    layout.predicted_ms = plan.ms;
    layout.bubble = plan.bubble;
    layout.activations_mb = activations_of(plan, measured);
    layout.cost = plan.cost;
    return layout;
}

// Of a planned layout; `given`: the cuts that were asked for.
PipelineLayout pipelines_of(const LayoutPlan& plan,
                            const std::optional<PipelineLayout>& given,
                            const LayoutProblem& problem,
                            const std::vector<MeasuredSize>& sizes,
                            const MeasuredRanks& measured) {
    PipelineLayout layout{.workers = {}, .batch = problem.batch};
    for (std::size_t w = 0; w < plan.workers.size(); ++w) {
        const WorkerPlan& worker = plan.workers[w];
        layout.workers.push_back(
            layout_of(worker,
                      given ? given->workers[w].micro_batch
                            : size_of(problem, sizes, worker.micro_batch).micro_batch,
                      given ? given->workers[w].extra_in_flight : worker.extra_in_flight,
                      measured));
    }
    return layout;
}

double fullest(const LayoutPlan& plan) {
    double most = 0;
    for (const WorkerPlan& worker : plan.workers)
        for (const StageMemory& memory : worker.memory)
            if (memory.usable_mb > 0)
                most = std::max(most, memory.needed_mb / memory.usable_mb);
    return most;
}

ComparedLayout compared(const LayoutPlan& plan) {
    return {.name = plan.name,
            .ranks = plan.ranks(),
            .update_ms = plan.update_ms,
            .compute_ms = plan.compute_ms,
            .reduce_ms = plan.reduce_ms,
            .memory = fullest(plan),
            .why_not = plan.why_not};
}

bool is_data_parallel(const LayoutPlan& plan) {
    return std::all_of(plan.workers.begin(), plan.workers.end(), [](const WorkerPlan& worker) {
        return worker.ranks.size() == 1;
    });
}

// Of replicas, in the order of their ranks; 0: the largest that was measured.
std::vector<std::int64_t> replica_sizes(const LayoutPlan& plan,
                                        const LayoutProblem& problem,
                                        const std::vector<MeasuredSize>& sizes) {
    std::map<int, std::int64_t> by_rank;
    for (const WorkerPlan& worker : plan.workers) {
        const std::int64_t own = size_of(problem, sizes, worker.micro_batch).micro_batch;
        by_rank[worker.ranks.front()] = own < sizes.front().micro_batch ? own : 0;
    }
    std::vector<std::int64_t> ordered;
    for (const auto& [rank, size] : by_rank)
        ordered.push_back(size);
    return ordered;
}

// A pipeline that is hardly faster than replicas by a prediction may be slower.
void take_simpler_first(std::vector<LayoutPlan>& plans) {
    constexpr double hardly = 1.03;
    const auto simple = std::find_if(plans.begin(), plans.end(), [](const LayoutPlan& plan) {
        return plan.fits() && is_data_parallel(plan);
    });
    if (simple != plans.end() && simple->update_ms <= hardly * plans.front().update_ms)
        std::rotate(plans.begin(), simple, simple + 1);
}

// The stage that lacks most, or has least left.
struct Tightest {
    std::size_t worker = 0, stage = 0;
    double overshoot_mb = 0;
};
Tightest tightest(const LayoutPlan& plan) {
    Tightest found;
    bool is_first = true;
    for (std::size_t w = 0; w < plan.workers.size(); ++w)
        for (std::size_t s = 0; s < plan.workers[w].memory.size(); ++s) {
            const double overshoot_mb = plan.workers[w].memory[s].overshoot_mb();
            if (is_first || overshoot_mb > found.overshoot_mb)
                found = {w, s, overshoot_mb};
            is_first = false;
        }
    return found;
}

[[noreturn]] void refuse(const LayoutPlan& nearest, const RunSettings& settings) {
    const auto [w, s, overshoot_mb] = tightest(nearest);
    const WorkerPlan& worker = nearest.workers[w];
    const RankInfo& info = settings.topology.rank(worker.ranks[s]);
    const auto whole = [](double mb) { return std::to_string(std::llround(mb)); };
    throw BadConfig("no cut of the model fits the virtual worker's memory: of the nearest, stage " +
                        std::to_string(s) + " of " + std::to_string(worker.stages.size()) +
                        " would need " + whole(worker.memory[s].needed_mb / usable_memory) +
                        " MiB of rank " + std::to_string(info.rank) + " on " + info.host,
                    "it has " + whole(worker.memory[s].usable_mb / usable_memory) + " MiB",
                    "add ranks to the worker, give --recompute all, or use a smaller model");
}

std::vector<int> ranks_of(const LayoutPlan& plan) {
    std::vector<int> ranks;
    for (const WorkerPlan& worker : plan.workers)
        ranks.insert(ranks.end(), worker.ranks.begin(), worker.ranks.end());
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

std::vector<GivenWorker> given_workers(const PipelineLayout& layout,
                                       const LayoutProblem& problem,
                                       const std::vector<MeasuredSize>& sizes) {
    std::vector<GivenWorker> workers;
    for (const WorkerLayout& worker : layout.workers) {
        GivenWorker& given = workers.emplace_back();
        given.ranks = worker.ranks;
        given.micro_batch = nearest_size(problem, sizes, worker.micro_batch);
        for (const UnitRange& units : worker.cut.units)
            given.units.push_back(units.size());
    }
    return workers;
}

// The fastest comes first; those that do not fit are last.
std::vector<LayoutPlan> plans_of(const LayoutProblem& problem,
                                 const AskedLayout& asked,
                                 const std::vector<MeasuredSize>& sizes) {
    if (asked.given)
        return {plan_given(problem, given_workers(*asked.given, problem, sizes))};
    if (!asked.workers.empty())
        return {plan_workers(problem, asked.workers)};
    std::vector<LayoutPlan> plans = compare_layouts(problem);
    take_simpler_first(plans);
    return plans;
}

struct Planned {
    MeasuredRanks ranks;  // of the problem
    bool lends;           // no rank has copies
    std::vector<LayoutPlan> plans;
};

// A checkpoint without copies makes one update wait.
bool is_worth_it(const LayoutPlan& without_copies, const LayoutPlan& with) {
    constexpr double much = 1.03;
    return !with.fits() ||
           (without_copies.fits() && with.update_ms > much * without_copies.update_ms);
}

}  // namespace

LayoutChoice best_layout(const RunSettings& settings,
                         const AskedLayout& asked,
                         const std::vector<MeasuredSize>& sizes,
                         const CostsBySize& costs,
                         const MeasuredRanks& ranks) {
    const auto problem_of = [&](const MeasuredRanks& measured) {
        return layout_problem(settings, sizes, costs, measured);
    };
    Planned taken{ranks, false, plans_of(problem_of(ranks), asked, sizes)};
    if (!asked.given && ranks.memory.counts_copies()) {
        Planned other{ranks, true, {}};
        other.ranks.memory = ranks.memory.without_copies();
        other.plans = plans_of(problem_of(other.ranks), asked, sizes);
        if (is_worth_it(other.plans.front(), taken.plans.front()))
            taken = std::move(other);
    }
    const LayoutPlan& best = taken.plans.front();
    if (!asked.given && !best.fits())
        refuse(*std::min_element(taken.plans.begin(),
                                 taken.plans.end(),
                                 [](const LayoutPlan& a, const LayoutPlan& b) {
                                     return tightest(a).overshoot_mb < tightest(b).overshoot_mb;
                                 }),
               settings);
    LayoutChoice choice{.ranks = ranks_of(best),
                        .shards_state = best.shards_state,
                        .lends_to_checkpoints = taken.lends};
    if (!asked.workers.empty() || !is_data_parallel(best))
        choice.pipelines =
            pipelines_of(best, asked.given, problem_of(taken.ranks), sizes, taken.ranks);
    else
        choice.micro_batches = replica_sizes(best, problem_of(taken.ranks), sizes);
    if (asked.workers.empty())
        for (const LayoutPlan& plan : taken.plans)
            choice.compared.push_back(compared(plan));
    return choice;
}

}  // namespace hetseq
