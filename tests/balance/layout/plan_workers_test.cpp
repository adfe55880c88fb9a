#include "hetseq/balance/layout/plan_workers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

#include "balance/layout/layout_reference.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double shortest_ms = 1e-6;

TEST(PlanWorkersTest, IsNearlyAlwaysTheBestOfAllCutsOfAllDivisionsOfFewRanks) {
    RandomLayouts layouts{31};
    int fitting = 0, several = 0, pipelines = 0, best = 0, best_compute = 0;

    for (int instance = 0; instance < 400; ++instance) {
        const LayoutProblem problem = layouts.problem(4, 5, 16);
        for (const Workers& workers : all_divisions(problem.ranks())) {
            const AllPlans all{problem, workers};

            const LayoutPlan plan = plan_workers(problem, workers);

            ASSERT_EQ(plan.fits(), std::isfinite(all.update_ms)) << "instance " << instance;
            if (!plan.fits())
                continue;
            ASSERT_LE(plan.update_ms, 1.35 * all.update_ms + shortest_ms)
                << "instance " << instance;
            ASSERT_GE(plan.update_ms, all.update_ms - shortest_ms) << "instance " << instance;
            ASSERT_GE(plan.compute_ms, all.compute_ms - shortest_ms) << "instance " << instance;
            ++fitting;
            several += workers.size() > 1 ? 1 : 0;
            pipelines += plan.ranks() > plan.workers.size() ? 1 : 0;
            best += plan.update_ms <= all.update_ms + shortest_ms ? 1 : 0;
            best_compute += plan.compute_ms <= all.compute_ms + shortest_ms ? 1 : 0;
        }
    }

    EXPECT_GT(fitting, 1000);
    EXPECT_GT(several, 800);
    EXPECT_GT(pipelines, 300);
    EXPECT_GT(best, 0.96 * fitting);
    EXPECT_GT(best_compute, 0.88 * fitting);
}

// Where a worker's time is all that counts.
TEST(PlanWorkersTest, HardlyAnyWorkerAloneWouldDoItsShareFaster) {
    RandomLayouts layouts{33};
    int fitting = 0, best = 0;

    for (int instance = 0; instance < 200; ++instance) {
        LayoutProblem problem = layouts.problem(8, 10, 60);
        problem.optimizer_ms = [](std::size_t, std::size_t, std::size_t) { return 0.0; };
        problem.gradients_mb = [](std::size_t, std::size_t) { return 0.0; };
        Workers workers(2);
        for (std::size_t rank = 0; rank < problem.ranks(); ++rank)
            workers[rank % 2].push_back(static_cast<int>(rank));
        if (problem.ranks() < 2)
            continue;
        const LayoutPlan plan = plan_workers(problem, workers);
        for (std::size_t w = 0; plan.fits() && w < 2; ++w) {
            if (plan.workers[w].units == 0)
                continue;
            problem.batch = plan.workers[w].units;
            const LayoutPlan alone = plan_workers(problem, Workers{workers[w]});
            ++fitting;
            best += plan.workers[w].ms <= alone.compute_ms + shortest_ms ? 1 : 0;
        }
    }

    EXPECT_GT(fitting, 100);
    EXPECT_GT(best, 0.9 * fitting);
}

// The numbers of a cut on a cluster that has only the devices it uses: how fast a host's card is
// shows in its links to these.
PipelineCut on_own_devices(ChainProblem chain, const PipelineCut& cut) {
    for (std::size_t c = 0; c < chain.devices.size(); ++c)
        chain.devices[c].count =
            static_cast<std::size_t>(std::ranges::count(cut.stages, c, &ChainStage::device_class));
    return with_more_in_flight(chain, evaluate_cut(chain, cut.stages));
}

// Today's choice for one virtual worker: each size's cut, the fastest that fits.
TEST(PlanWorkersTest, OneWorkerIsNoSlowerThanTheFastestCutOfAllSizes) {
    RandomLayouts layouts{32};
    int same = 0, fitting = 0;

    for (int instance = 0; instance < 300; ++instance) {
        LayoutProblem problem = layouts.problem(5, 8, 20);
        problem.batch *= 2;
        problem.optimizer_ms = [](std::size_t, std::size_t, std::size_t) { return 0.0; };
        problem.gradients_mb = [](std::size_t, std::size_t) { return 0.0; };
        for (LayoutProblem::Size& size : problem.sizes)
            size.chain.tied.clear();
        double fastest_ms = std::numeric_limits<double>::infinity();
        for (const LayoutProblem::Size& size : problem.sizes) {
            ChainProblem chain = size.chain;
            chain.micro_batches = static_cast<std::size_t>(problem.batch / size.micro_batch);
            const PipelineCut cut = on_own_devices(chain, partition_chain(chain));
            if (cut.fits())
                fastest_ms = std::min(fastest_ms, cut.predicted_ms);
        }
        std::vector<int> ranks(problem.ranks());
        std::iota(ranks.begin(), ranks.end(), 0);

        const LayoutPlan plan = plan_workers(problem, Workers{ranks});

        ASSERT_EQ(plan.fits(), std::isfinite(fastest_ms)) << "instance " << instance;
        if (!plan.fits())
            continue;
        ASSERT_LE(plan.update_ms, fastest_ms * (1 + 1e-9)) << "instance " << instance;
        ++fitting;
        same += plan.update_ms >= fastest_ms * (1 - 1e-9) ? 1 : 0;
    }

    EXPECT_GT(fitting, 150);
    EXPECT_GT(same, 0.85 * fitting);
}

// Two units of 1 ms forward and 2 ms backward, three times that on class 1; 10 MiB of state a unit.
LayoutProblem two_classes(std::vector<std::size_t> counts, std::int64_t batch) {
    LayoutProblem problem;
    ChainProblem chain;
    for (std::size_t c = 0; c < counts.size(); ++c) {
        const double slowness = c == 0 ? 1 : 3;
        chain.devices.push_back({.count = counts[c],
                                 .forward_ms = {slowness, slowness},
                                 .backward_ms = {2 * slowness, 2 * slowness},
                                 .memory_mb = 100});
        problem.class_of.insert(problem.class_of.end(), counts[c], c);
    }
    chain.links.assign(counts.size(), std::vector<ChainLink>(counts.size()));
    chain.activations_mb = chain.gradients_mb = {1, 1};
    chain.activations_mb_kept = chain.workspace_mb = {0, 0};
    chain.state_mb = [](std::size_t begin, std::size_t end, std::size_t) {
        return 10 * static_cast<double>(end - begin);
    };
    problem.sizes = {{1, chain}};
    problem.host_of.assign(problem.class_of.size(), 0);
    problem.batch = batch;
    problem.all_reduce_ms = [](std::span<const int>, double mb) { return mb; };
    problem.gradients_mb = [](std::size_t begin, std::size_t end) {
        return 4 * static_cast<double>(end - begin);
    };
    problem.optimizer_ms = [](std::size_t begin, std::size_t end, std::size_t device_class) {
        return static_cast<double>((end - begin) * (device_class + 1));
    };
    return problem;
}

TEST(PlanWorkersTest, OneRankAWorkerHasTheSharesOfDataParallelism) {
    const LayoutProblem problem = two_classes({1, 1}, 16);

    const LayoutPlan plan = plan_workers(problem, Workers{{0}, {1}});

    const std::vector<StepCost> costs{{.micro_batch_ms = 6, .unit_ms = 0, .micro_batch = 1},
                                      {.micro_batch_ms = 18, .unit_ms = 0, .micro_batch = 1}};
    EXPECT_THAT(allocate(costs, 16), ElementsAre(plan.workers[0].units, plan.workers[1].units));
    EXPECT_EQ(plan.workers[0].units, 12);
    EXPECT_DOUBLE_EQ(plan.compute_ms, 72);
    // Backward of the second unit ends 2 ms (6 on the slow rank) before the first one's. So its sum
    // of 4 ms begins at 70, at which the slow rank has it, too, and the other one's follows.
    EXPECT_DOUBLE_EQ(plan.reduce_ms, 70 + 4 + 4 - 72);
    EXPECT_DOUBLE_EQ(plan.optimizer_ms, 4);
    EXPECT_DOUBLE_EQ(plan.update_ms, 72 + 6 + 4);
    EXPECT_TRUE(plan.fits());
}

// a = 2 ms for each micro-batch, c = 1 ms for each unit, as two sizes show.
TEST(PlanWorkersTest, WhatIsLessThanAMicroBatchTakesWhatALineThroughTheSizesSays) {
    LayoutProblem problem = two_classes({1}, 9);
    problem.sizes.push_back(problem.sizes.front());
    for (std::size_t i : {0, 1}) {
        problem.sizes[i].micro_batch = i == 0 ? 4 : 2;
        problem.sizes[i].chain.devices[0].forward_ms = {0.5, 0.5};
        problem.sizes[i].chain.devices[0].backward_ms = {0.5, i == 0 ? 4.5 : 2.5};
    }

    const LayoutPlan plan = plan_workers(problem, Workers{{0}});

    EXPECT_EQ(plan.workers[0].micro_batch, 4);
    EXPECT_DOUBLE_EQ(plan.compute_ms, 3 * 2 + 9);
}

TEST(PlanWorkersTest, AWorkerThatIsTooSlowGetsNothing) {
    LayoutProblem problem = two_classes({1, 1}, 2);

    const LayoutPlan plan = plan_workers(problem, Workers{{0}, {1}});

    EXPECT_EQ(plan.workers[0].units, 2);
    EXPECT_EQ(plan.workers[1].units, 0);
    EXPECT_EQ(plan.workers[1].ms, 0);
    EXPECT_EQ(plan.workers[1].ranks, std::vector<int>{1});
    EXPECT_EQ(plan.compute_ms, 12);
}

TEST(PlanWorkersTest, RanksThatACutHasNoUseForAreLeftOut) {
    LayoutProblem problem = two_classes({2, 2}, 64);

    const LayoutPlan plan = plan_workers(problem, Workers{{3, 1, 2, 0}});

    EXPECT_EQ(plan.workers[0].ranks, (std::vector<int>{1, 0}));
    EXPECT_EQ(plan.ranks(), 2);
    EXPECT_DOUBLE_EQ(plan.compute_ms, (64 + 1) * 3);
    EXPECT_DOUBLE_EQ(plan.reduce_ms, 0);
    EXPECT_DOUBLE_EQ(plan.optimizer_ms, 1);
    EXPECT_NEAR(plan.workers[0].bubble, 1.0 / 65, 1e-9);
}

// Each rank holds one unit alone.
TEST(PlanWorkersTest, WhereNoRankHoldsTheModelWorkersArePipelines) {
    LayoutProblem problem = two_classes({4}, 64);
    problem.sizes[0].chain.devices[0].memory_mb = 15;

    const LayoutPlan alone = plan_workers(problem, Workers{{0}, {1}, {2}, {3}});
    const LayoutPlan pairs = plan_workers(problem, Workers{{0, 1}, {2, 3}});

    EXPECT_EQ(alone.why_not, "rank 0 would need 22 of 17 MiB");
    EXPECT_TRUE(pairs.fits());
    EXPECT_EQ(pairs.workers[1].ranks, (std::vector<int>{2, 3}));
    EXPECT_EQ(pairs.workers[1].memory.size(), 2);
    EXPECT_EQ(pairs.workers[1].memory[0].needed_mb, 11);
    EXPECT_DOUBLE_EQ(pairs.compute_ms, (32 + 1) * 3);
    // The second unit's sum begins with the end of its last backward, 2 ms before the first one's,
    // and other ranks have that.
    EXPECT_DOUBLE_EQ(pairs.reduce_ms, 4);
}

TEST(PlanWorkersTest, SharesMayBeGiven) {
    LayoutProblem problem = two_classes({4, 2}, 64);
    problem.given_shares = [](std::span<const LayoutProblem::Sharer> workers) {
        EXPECT_EQ(workers[2].ranks, std::vector<int>{2});
        EXPECT_EQ(workers[2].size, 0);
        std::vector<std::int64_t> shares(workers.size(), 8);
        shares.front() = 64 - 8 * (static_cast<std::int64_t>(shares.size()) - 1);
        return shares;
    };

    const LayoutPlan plan = plan_workers(problem, Workers{{0}, {1}, {2}, {3}});

    EXPECT_EQ(plan.workers[0].units, 40);
    EXPECT_EQ(plan.workers[3].units, 8);
    problem.given_shares = {};
    const LayoutPlan by_times = plan_workers(problem, Workers{{0}, {1}, {2}, {3}});
    EXPECT_GT(plan.compute_ms, by_times.compute_ms);
}

TEST(PlanWorkersTest, LateSumsHaveAllOfTheNextUpdate) {
    const Workers workers{{0}, {1}, {2}, {3}};
    LayoutProblem problem = two_classes({4}, 64);
    for (const double slower : {1.0, 1000.0}) {
        const auto all_reduce_ms = two_classes({4}, 64).all_reduce_ms;
        problem.all_reduce_ms = [&](std::span<const int> ranks, double mb) {
            return slower * all_reduce_ms(ranks, mb);
        };
        problem.is_late = false;
        const LayoutPlan in_time = plan_workers(problem, workers);
        problem.is_late = true;

        const LayoutPlan late = plan_workers(problem, workers);

        const std::vector<int> ranks{0, 1, 2, 3};
        const double sums_ms =
            problem.all_reduce_ms(ranks, problem.gradients_mb(0, problem.units()));
        EXPECT_DOUBLE_EQ(late.compute_ms, in_time.compute_ms);
        EXPECT_NEAR(late.reduce_ms, std::max(0.0, sums_ms - late.compute_ms), 1e-9);
        EXPECT_LT(late.reduce_ms, in_time.reduce_ms);
    }
}

TEST(PlanWorkersTest, WhatDoesNotFitNamesItsStage) {
    LayoutProblem problem = two_classes({2}, 64);
    problem.sizes[0].chain.devices[0].memory_mb = 5;

    const LayoutPlan plan = plan_workers(problem, Workers{{0, 1}});

    EXPECT_THAT(plan.why_not, HasSubstr("rank 0, stage 0 of worker 0, would need 12 of 6 MiB"));
}

TEST(PlanWorkersTest, AShardedStateLetsRanksHoldTheModel) {
    LayoutProblem problem = two_classes({4}, 64);
    problem.sizes[0].chain.devices[0].memory_mb = 15;
    problem.sharded_state_mb = [](std::size_t, std::size_t ranks) {
        return 10 + 10.0 / static_cast<double>(ranks);
    };
    const Workers workers{{0}, {1}, {2}, {3}};

    const LayoutPlan plan = plan_workers(problem, workers, WorkerState::sharded);

    EXPECT_TRUE(plan.fits());
    EXPECT_TRUE(plan.shards_state);
    EXPECT_EQ(plan.workers[0].memory[0].needed_mb, 12.5);
    EXPECT_DOUBLE_EQ(plan.compute_ms, 96);
    // Half the time of the sums, 2 ms for each unit, the second unit's beside the first one's
    // backward; then values are gathered.
    EXPECT_DOUBLE_EQ(plan.reduce_ms, 2 + 4);
    EXPECT_DOUBLE_EQ(plan.optimizer_ms, 0.5);
}

// Two hosts of two ranks, each of which holds a unit. A message between hosts takes 100 ms.
TEST(PlanWorkersTest, LinksAreThoseOfTheWorkersOwnRanks) {
    LayoutProblem problem = two_classes({4}, 64);
    problem.sizes[0].chain.devices[0].memory_mb = 15;
    problem.sizes[0].chain.links = {{{.latency_ms = 1000}}};
    problem.host_of = {0, 0, 1, 1};
    problem.link = [](int from, int to) {
        return ChainLink{.latency_ms = from / 2 == to / 2 ? 0.0 : 100.0};
    };

    const LayoutPlan within = plan_workers(problem, Workers{{0, 1}, {2, 3}});
    const LayoutPlan between = plan_workers(problem, Workers{{0, 2}, {1, 3}});

    EXPECT_DOUBLE_EQ(within.compute_ms, (32 + 1) * 3);
    EXPECT_GT(between.compute_ms, 32 * 100);
    EXPECT_LT(between.compute_ms, 32 * 1000);
    EXPECT_DOUBLE_EQ(within.reduce_ms, 4);
    EXPECT_DOUBLE_EQ(between.reduce_ms, 4);
}

TEST(PlanWorkersTest, ARankIsInOneWorkerAlone) {
    const LayoutProblem problem = two_classes({2}, 4);

    EXPECT_THROW(plan_workers(problem, Workers{{0, 1}, {1}}), InternalError);
    EXPECT_THROW(plan_workers(problem, Workers{{0}, {}}), InternalError);
}

TEST(PlanGivenTest, TakesTheCutsAsTheyAre) {
    const LayoutProblem problem = two_classes({2, 2}, 8);

    const LayoutPlan plan =
        plan_given(problem, std::vector<GivenWorker>{{{1, 0}, {1, 1}}, {{2, 3}, {1, 1}, 1}});

    EXPECT_EQ(plan.workers[0].stages, (std::vector<ChainStage>{{0, 0, 1}, {0, 1, 2}}));
    EXPECT_EQ(plan.workers[0].ranks, (std::vector<int>{1, 0}));
    EXPECT_EQ(plan.workers[1].stages, (std::vector<ChainStage>{{1, 0, 1}, {1, 1, 2}}));
    EXPECT_EQ(plan.workers[0].units, 7);
    EXPECT_EQ(plan.workers[1].units, 1);
    EXPECT_DOUBLE_EQ(plan.compute_ms, 8 * 3);
    EXPECT_DOUBLE_EQ(plan.workers[1].ms, 2 * 9);
}

TEST(PlanGivenTest, RefusesWhatIsNoCut) {
    const LayoutProblem problem = two_classes({2}, 8);
    const auto refused = [&](const GivenWorker& worker) {
        EXPECT_THROW(plan_given(problem, std::vector<GivenWorker>{worker}), InternalError);
    };

    refused({{0, 1}, {1}});
    refused({{0, 1}, {2, 1}});
    refused({{0}, {1}});
    refused({{0}, {2}, 7});
}

}  // namespace
}  // namespace hetseq
