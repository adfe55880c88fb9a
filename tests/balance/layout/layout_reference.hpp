#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "hetseq/balance/layout/plan_workers.hpp"

#include "balance/layout/layout_planner.hpp"
#include "balance/pipeline/chain_reference.hpp"

namespace hetseq {

/// Small random layouts: two sizes of micro-batches, memory that is short, slow links, tied
/// gradients, some hosts.
class RandomLayouts {
public:
    explicit RandomLayouts(unsigned seed) : chains_{seed} {}

    int draw(int low, int high) { return chains_.draw(low, high); }

    LayoutProblem problem(int most_ranks, int most_units, int most_batch) {
        LayoutProblem problem;
        const ChainProblem chain = chains_.problem(most_ranks, most_units);
        problem.sizes.push_back({2, chain});
        if (draw(0, 1) == 1)
            problem.sizes.push_back({1, halved(chain, 0.5 + 0.125 * draw(0, 2))});
        for (std::size_t c = 0; c < chain.devices.size(); ++c)
            problem.class_of.insert(problem.class_of.end(), chain.devices[c].count, c);
        for (std::size_t rank = 0; rank < problem.ranks(); ++rank)
            problem.host_of.push_back(draw(0, 2));
        problem.batch = draw(1, most_batch);
        add_sums(problem);
        return problem;
    }

private:
    static ChainProblem halved(ChainProblem chain, double times) {
        for (ChainDevices& devices : chain.devices)
            for (std::vector<double>* const all : {&devices.forward_ms, &devices.backward_ms})
                for (double& ms : *all)
                    ms *= times;
        for (std::vector<double>* const all : {&chain.activations_mb,
                                               &chain.gradients_mb,
                                               &chain.activations_mb_kept,
                                               &chain.workspace_mb})
            for (double& mb : *all)
                mb *= 0.5;
        return chain;
    }

    void add_sums(LayoutProblem& problem) {
        const double latency_ms = 0.25 * draw(0, 4), ms_per_mb = 0.5 * draw(0, 4);
        problem.all_reduce_ms = [=](std::span<const int> ranks, double mb) {
            const auto n = static_cast<double>(ranks.size());
            return 2 * (n - 1) * (latency_ms + mb / n * ms_per_mb);
        };
        std::vector<double> own_mb;
        for (std::size_t u = 0; u < problem.units(); ++u)
            own_mb.push_back(draw(0, 4));
        const double tied_mb = draw(0, 1) == 0 ? draw(1, 6) : 0;  // of the first and last unit
        for (LayoutProblem::Size& size : problem.sizes) {
            size.chain.tied.clear();
            if (tied_mb > 0 && problem.units() > 1)
                size.chain.tied = {{{0, problem.units() - 1}, tied_mb}};
            for (ChainDevices& devices : size.chain.devices)
                devices.host.reset();  // hosts are of ranks here
        }
        problem.gradients_mb = [=](std::size_t begin, std::size_t end) {
            double mb = begin == 0 || end == own_mb.size() ? tied_mb : 0;
            for (std::size_t u = begin; u < end; ++u)
                mb += own_mb[u];
            return mb;
        };
        const double optimizer_ms = 0.25 * draw(0, 4);  // of a unit
        problem.optimizer_ms = [=](std::size_t begin, std::size_t end, std::size_t device_class) {
            return optimizer_ms * static_cast<double>((end - begin) * (device_class + 1));
        };
    }

    RandomChains chains_;
};

using Workers = std::vector<std::vector<int>>;

/// All divisions of ranks 0 to `ranks` - 1 into workers.
inline std::vector<Workers> all_divisions(std::size_t ranks) {
    std::vector<Workers> divisions{{}};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::vector<Workers> longer;
        for (const Workers& division : divisions)
            for (std::size_t w = 0; w <= division.size(); ++w) {
                longer.push_back(division);
                if (w == division.size())
                    longer.back().emplace_back();
                longer.back()[w].push_back(static_cast<int>(rank));
            }
        divisions = std::move(longer);
    }
    return divisions;
}

/// The least times of all cuts, micro-batches and shares of given workers.
class AllPlans {
public:
    AllPlans(const LayoutProblem& problem, const Workers& workers)
        : problem_{problem}, planner_{problem} {
        for (const std::vector<int>& ranks : workers) {
            left_ = ranks;
            cuts_.emplace_back();
            extend({}, problem.units());
        }
        combine(0);
    }

    // Infinite where nothing fits.
    double compute_ms = std::numeric_limits<double>::infinity();
    double update_ms = std::numeric_limits<double>::infinity();

private:
    void extend(const GivenWorker& worker, std::size_t units) {
        if (units == 0) {
            for (const LayoutProblem::Size& size : problem_.sizes) {
                cuts_.back().push_back(worker);
                cuts_.back().back().micro_batch = size.micro_batch;
            }
            return;
        }
        for (std::size_t i = 0; i < left_.size(); ++i) {
            const int rank = left_[i];
            left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(i));
            for (std::size_t own = 1; own <= units; ++own) {
                GivenWorker longer = worker;
                longer.ranks.push_back(rank);
                longer.units.push_back(own);
                extend(longer, units - own);
            }
            left_.insert(left_.begin() + static_cast<std::ptrdiff_t>(i), rank);
        }
    }

    void combine(std::size_t worker) {
        if (worker == cuts_.size())
            return judge();
        for (const GivenWorker& cut : cuts_[worker]) {
            chosen_.push_back(cut);
            combine(worker + 1);
            chosen_.pop_back();
        }
    }

    void judge() {
        const LayoutPlan plan = planner_.given(chosen_, WorkerState::whole);
        if (!plan.fits())
            return;
        compute_ms = std::min(compute_ms, least_compute_ms(plan, 0, problem_.batch, 0));
        update_ms = std::min(update_ms, plan.update_ms);
    }

    static double least_compute_ms(const LayoutPlan& plan,
                                   std::size_t worker,
                                   std::int64_t units,
                                   double slowest_ms) {
        const StepCost& cost = plan.workers[worker].cost;
        if (worker + 1 == plan.workers.size())
            return std::max(slowest_ms, cost.time_ms(units));
        double least_ms = std::numeric_limits<double>::infinity();
        for (std::int64_t own = 0; own <= units; ++own)
            least_ms = std::min(
                least_ms,
                least_compute_ms(
                    plan, worker + 1, units - own, std::max(slowest_ms, cost.time_ms(own))));
        return least_ms;
    }

    const LayoutProblem& problem_;
    LayoutPlanner planner_;
    std::vector<int> left_;
    std::vector<std::vector<GivenWorker>> cuts_;  // by worker
    std::vector<GivenWorker> chosen_;
};

}  // namespace hetseq
