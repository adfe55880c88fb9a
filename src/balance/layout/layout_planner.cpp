#include "layout_planner.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

#include "aligned_stages.hpp"
#include "compute_times.hpp"

namespace hetseq {

namespace {

constexpr int most_rounds = 8;
constexpr std::size_t most_tried = 64;  // workers that are tried with all cuts known for them
constexpr std::size_t most_alone = 8;   // and one by one
constexpr std::size_t most_stages = 8;  // whose cut is changed step by step

}  // namespace

LayoutPlanner::LayoutPlanner(const LayoutProblem& problem)
    : problem_{problem}, times_{problem}, kinds_{problem} {
    HETSEQ_ASSERT(!problem.sizes.empty() && problem.batch > 0 && problem.ranks() > 0);
    HETSEQ_ASSERT(problem.host_of.size() == problem.ranks());
}

WorkerCuts& LayoutPlanner::cuts_of(std::size_t sharded_over) {
    return cuts_.try_emplace(sharded_over, problem_, sharded_over).first->second;
}

DividedRanks LayoutPlanner::divided(std::vector<std::vector<int>> workers, WorkerState state) {
    const std::size_t over = state == WorkerState::sharded ? workers.size() : 1;
    HETSEQ_ASSERT(!workers.empty() && (over == 1 || problem_.sharded_state_mb));
    DividedRanks divided{{}, over};
    std::set<int> seen;
    for (std::vector<int>& ranks : workers) {
        HETSEQ_ASSERT(!ranks.empty() && (ranks.size() == 1 || state == WorkerState::whole));
        for (const int rank : ranks)
            HETSEQ_ASSERT(seen.insert(rank).second);
        WorkerKind kind = kinds_.of(ranks);
        divided.workers.push_back({std::move(ranks), std::move(kind)});
    }
    return divided;
}

bool LayoutPlanner::holds_model(int rank, std::size_t sharded_over) {
    return cuts_of(sharded_over).fastest(kinds_.of({&rank, 1}), 1).overshoot_mb <= 0;
}

std::vector<std::int64_t> LayoutPlanner::first_shares(const DividedRanks& ranks) const {
    std::vector<StepCost> costs;
    for (const WorkerRanks& worker : ranks.workers) {
        double speed = 0;
        for (const int rank : worker.ranks)
            speed += 1 / chain_ms(problem_, rank);
        costs.push_back({.unit_ms = 1 / speed});
    }
    return allocate(costs, problem_.batch);
}

LayoutDraft LayoutPlanner::best_of_rounds(const DividedRanks& ranks, const Choice& choose) const {
    std::vector<std::int64_t> shares = first_shares(ranks);
    LayoutDraft best;
    std::vector<const WorkerCut*> last;
    for (int round = 0; round < most_rounds; ++round) {
        std::vector<const WorkerCut*> cuts;
        for (std::size_t w = 0; w < shares.size(); ++w)
            cuts.push_back(choose(w, shares[w]));
        if (cuts == last)
            break;
        last = cuts;
        LayoutDraft next = times_.draft(ranks, std::move(cuts));
        shares = next.shares;
        if (round == 0 || next.is_better(best))
            best = std::move(next);
    }
    return best;
}

bool LayoutPlanner::takes(const DividedRanks& ranks,
                          std::vector<const WorkerCut*> cuts,
                          LayoutDraft& best) const {
    LayoutDraft next = times_.draft(ranks, std::move(cuts));
    const bool is_better = next.is_better(best);
    if (is_better)
        best = std::move(next);
    return is_better;
}

bool LayoutPlanner::try_cuts_for(const DividedRanks& ranks,
                                 std::span<const WorkerCut* const> cuts,
                                 std::span<const std::size_t> workers,
                                 LayoutDraft& best) const {
    bool found = false;
    for (const WorkerCut* cut : cuts) {
        std::vector<const WorkerCut*> tried = best.cuts;
        for (const std::size_t w : workers)
            tried[w] = cut;
        if (tried == best.cuts)
            continue;
        found = takes(ranks, std::move(tried), best) || found;
    }
    return found;
}

// With so many units a millisecond at the most, a layout may still be faster than `best`.
bool LayoutPlanner::may_be_better(double most_speed, const LayoutDraft& best) const {
    return best.overshoot_mb > 0 ||
           static_cast<double>(problem_.batch) < best.update_ms() * most_speed;
}

// All workers cut where one of them is: no rank then waits for two sums.
bool LayoutPlanner::try_aligned(const DividedRanks& ranks,
                                WorkerCuts& cuts,
                                LayoutDraft& best) const {
    std::set<std::pair<std::size_t, std::vector<std::size_t>>> places;
    for (const WorkerRanks& worker : ranks.workers)
        for (const WorkerCut* cut : cuts.known(worker.kind))
            places.emplace(cut->size, ends_of(cut->stages));
    bool found = false;
    for (const auto& [size, ends] : places) {
        std::vector<std::vector<ChainStage>> stages;
        double speed = 0;
        for (const WorkerRanks& worker : ranks.workers)
            if (ends.size() <= worker.ranks.size()) {
                stages.push_back(aligned_stages(problem_, size, ends, worker.ranks));
                speed += most_speed(problem_, size, stages.back());
            }
        const bool fits_all = stages.size() == ranks.workers.size();
        if (fits_all && !may_be_better(speed, best))
            continue;
        std::vector<const WorkerCut*> tried;  // of those that have the ranks for it
        auto next = stages.begin();
        for (const WorkerRanks& worker : ranks.workers)
            if (ends.size() <= worker.ranks.size())
                tried.push_back(&cuts.given(worker.kind, size, *next++));
        if (!fits_all)
            continue;
        found = takes(ranks, std::move(tried), best) || found;
    }
    return found;
}

// Near that of the first worker of a kind. All of the kind may take one, or, of few workers, one
// alone.
void LayoutPlanner::add_near_cuts(const WorkerKind& kind,
                                  std::span<const std::size_t> workers,
                                  WorkerCuts& cuts,
                                  const LayoutDraft& best) const {
    const auto speed_of = [&](const WorkerCut& cut) {
        return most_speed(problem_, cut.size, cut.stages);
    };
    double of_all = 0, of_kind = 0, slowest = std::numeric_limits<double>::infinity();
    for (const WorkerCut* const cut : best.cuts)
        of_all += speed_of(*cut);
    for (const std::size_t w : workers) {
        of_kind += speed_of(*best.cuts[w]);
        slowest = std::min(slowest, speed_of(*best.cuts[w]));
    }
    const bool one_alone = best.cuts.size() <= most_alone;
    const auto is_worth_it = [&](std::size_t size, std::span<const ChainStage> stages) {
        const double own = most_speed(problem_, size, stages);
        const double if_all = of_all - of_kind + own * static_cast<double>(workers.size());
        const double if_one = one_alone ? of_all - slowest + own : 0;
        return may_be_better(std::max(if_all, if_one), best);
    };
    cuts.add_near(kind, *best.cuts[workers.front()], is_worth_it);
}

// Of workers that are alike, all change at once: their stages then hold the same units.
void LayoutPlanner::try_known_cuts(const DividedRanks& ranks,
                                   WorkerCuts& cuts,
                                   LayoutDraft& best) const {
    if (ranks.workers.size() > most_tried)
        return;
    std::map<WorkerKind, std::vector<std::size_t>> like;
    for (std::size_t w = 0; w < ranks.workers.size(); ++w)
        like[ranks.workers[w].kind].push_back(w);
    bool found = true;
    for (int round = 0; found && round < most_rounds; ++round) {
        found = like.size() > 1 && try_aligned(ranks, cuts, best);
        for (const auto& [kind, workers] : like) {
            if (best.cuts[workers.front()]->stages.size() <= most_stages)
                add_near_cuts(kind, workers, cuts, best);
            const std::vector<const WorkerCut*> known = cuts.known(kind);
            found = try_cuts_for(ranks, known, workers, best) || found;
            if (ranks.workers.size() <= most_alone)
                for (const std::size_t w : workers)
                    found = try_cuts_for(ranks, known, {&w, 1}, best) || found;
        }
    }
}

LayoutPlan LayoutPlanner::plan(std::span<const std::vector<int>> workers, WorkerState state) {
    const DividedRanks ranks = divided({workers.begin(), workers.end()}, state);
    WorkerCuts& cuts = cuts_of(ranks.sharded_over);
    LayoutDraft best = best_of_rounds(ranks, [&](std::size_t w, std::int64_t units) {
        return &cuts.fastest(ranks.workers[w].kind, units);
    });
    try_known_cuts(ranks, cuts, best);
    return times_.finished(ranks, best, cuts);
}

std::vector<ChainStage> LayoutPlanner::stages_of(const GivenWorker& worker) const {
    HETSEQ_ASSERT(worker.units.size() == worker.ranks.size());
    std::vector<ChainStage> stages;
    std::size_t begin = 0;
    for (std::size_t s = 0; s < worker.ranks.size(); ++s) {
        const std::size_t end = begin + worker.units[s];
        stages.push_back(
            {problem_.class_of[static_cast<std::size_t>(worker.ranks[s])], begin, end});
        begin = end;
    }
    return stages;
}

LayoutPlan LayoutPlanner::given(std::span<const GivenWorker> workers, WorkerState state) {
    std::vector<std::vector<int>> of_workers;
    for (const GivenWorker& worker : workers)
        of_workers.push_back(worker.ranks);
    const DividedRanks ranks = divided(std::move(of_workers), state);
    WorkerCuts& cuts = cuts_of(ranks.sharded_over);
    const auto choose = [&](std::size_t w, std::int64_t units) {
        const std::vector<ChainStage> stages = stages_of(workers[w]);
        const WorkerCut* best = nullptr;
        for (std::size_t size = 0; size < problem_.sizes.size(); ++size) {
            if (workers[w].micro_batch > 0 &&
                workers[w].micro_batch != problem_.sizes[size].micro_batch)
                continue;
            const WorkerCut& cut = cuts.given(ranks.workers[w].kind, size, stages);
            if (!best || is_better(cut, *best, units))
                best = &cut;
        }
        HETSEQ_ASSERT(best != nullptr);
        return best;
    };
    return times_.finished(ranks, best_of_rounds(ranks, choose), cuts);
}

}  // namespace hetseq
