#include "hetseq/balance/layout/compare_layouts.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iostream>
#include <limits>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "balance/layout/divisions.hpp"
#include "balance/layout/layout_reference.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

// 26 units; 4 kinds of ranks, 8 to a host, in turn.
LayoutProblem large_cluster(std::size_t ranks, double memory_mb) {
    std::mt19937 random(5);
    std::uniform_real_distribution<double> spread(0.8, 1.2);
    constexpr std::size_t units = 26;
    LayoutProblem problem;
    for (const std::int64_t micro_batch : {16, 8, 4, 2, 1}) {
        ChainProblem chain;
        const auto size = static_cast<double>(micro_batch);
        for (const double slowness : {1.0, 1.5, 2.5, 6.0}) {
            ChainDevices devices{.count = ranks / 4, .memory_mb = memory_mb / slowness};
            for (std::size_t u = 0; u < units; ++u) {
                devices.forward_ms.push_back(slowness * (0.2 + size * spread(random)));
                devices.backward_ms.push_back(slowness * (0.4 + 2 * size * spread(random)));
            }
            chain.devices.push_back(devices);
        }
        chain.links.assign(4, std::vector<ChainLink>(4, {.latency_ms = 0.05, .ms_per_mb = 0.3}));
        chain.activations_mb.assign(units, 0.5 * size);
        chain.gradients_mb.assign(units, 0.5 * size);
        chain.activations_mb_kept.assign(units, 4 * size);
        chain.workspace_mb.assign(units, 2 * size);
        chain.state_mb = [](std::size_t begin, std::size_t end, std::size_t) {
            return 200 * static_cast<double>(end - begin);
        };
        problem.sizes.push_back({micro_batch, chain});
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        problem.class_of.push_back(rank / 8 % 4);
        problem.host_of.push_back(static_cast<int>(rank / 8));
    }
    problem.batch = static_cast<std::int64_t>(16 * ranks);
    problem.all_reduce_ms = [](std::span<const int> all, double mb) {
        return 0.02 * static_cast<double>(all.size()) + 0.3 * 2 * mb;
    };
    problem.gradients_mb = [](std::size_t begin, std::size_t end) {
        return 50 * static_cast<double>(end - begin);
    };
    problem.optimizer_ms = [](std::size_t begin, std::size_t end, std::size_t device_class) {
        return 0.2 * static_cast<double>((end - begin) * (device_class + 1));
    };
    return problem;
}

// The size of a large job. Prints the time; asserts what holds on any machine.
TEST(CompareLayoutsTest, ManyRanksOfFourKinds) {
#ifdef __SANITIZE_ADDRESS__
    constexpr std::size_t ranks = 128, least = 30;  // it makes all slower
#else
    constexpr std::size_t ranks = 1024, least = 40;
#endif
    LayoutProblem problem = large_cluster(ranks, 7000);
    problem.sizes.resize(1);
    problem.link = [&](int from, int to) {
        const auto at = [&](int rank) { return problem.host_of[static_cast<std::size_t>(rank)]; };
        const double noise = 1 + 0.01 * (from * 31 % 17 + to * 17 % 13);
        return at(from) == at(to) ? ChainLink{.latency_ms = 0.01 * noise, .ms_per_mb = 0.05}
                                  : ChainLink{.latency_ms = 0.05 * noise, .ms_per_mb = 0.3};
    };

    const std::clock_t begin = std::clock();
    const std::vector<LayoutPlan> plans = compare_layouts(problem);
    const double took_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;

    std::cout << plans.size() << " layouts: " << took_s << " s\n";
    EXPECT_GT(plans.size(), least);
    EXPECT_TRUE(plans.front().fits());
    EXPECT_GT(plans.front().ranks(), ranks * 9 / 10);
    EXPECT_FALSE(plans.back().fits());
}

std::vector<std::string> names(const std::vector<Division>& divisions) {
    std::vector<std::string> names;
    for (const Division& division : divisions)
        names.push_back(division.name);
    return names;
}

// Ranks 0 to 2 on host 0, 3 to 5 on host 1; the odd ones are slow.
LayoutProblem two_hosts() {
    LayoutProblem problem = large_cluster(8, 100000);
    problem.class_of = {0, 1, 0, 1, 0, 1};
    problem.host_of = {0, 0, 0, 1, 1, 1};
    for (LayoutProblem::Size& size : problem.sizes) {
        size.chain.devices.resize(2);
        size.chain.devices[0].count = size.chain.devices[1].count = 3;
        size.chain.links.resize(2);
        for (std::vector<ChainLink>& links : size.chain.links)
            links.resize(2);
    }
    problem.batch = 96;
    return problem;
}

TEST(CandidateDivisionsTest, AreDataParallelismAndWorkersOfAllOfHostsAndOfKinds) {
    const LayoutProblem problem = two_hosts();
    LayoutPlanner planner{problem};

    const std::vector<Division> divisions = candidate_divisions(planner);

    EXPECT_THAT(names(divisions),
                ElementsAre("data parallelism on all 6 ranks",
                            "data parallelism on 3 ranks, without the slowest kinds",
                            "data parallelism on 3 ranks, without the slowest hosts",
                            "rank 0 alone",
                            "one worker of all 6 ranks",
                            "one worker of each host",
                            "2 workers, over which each kind of ranks is dealt",
                            "3 workers, over which each kind of ranks is dealt"));
    EXPECT_EQ(divisions[1].workers, (Workers{{0}, {2}, {4}}));
    EXPECT_EQ(divisions[2].workers, (Workers{{0}, {1}, {2}}));
    EXPECT_EQ(divisions[6].workers, (Workers{{0, 4, 3}, {2, 1, 5}}));
    EXPECT_EQ(divisions[7].workers, (Workers{{0, 1}, {2, 3}, {4, 5}}));
}

// Slow ranks lack memory.
TEST(CandidateDivisionsTest, RanksThatHoldTheModelMayStandBesideWorkersOfTheOthers) {
    LayoutProblem problem = two_hosts();
    for (LayoutProblem::Size& size : problem.sizes)
        size.chain.devices[1].memory_mb = 5000;
    LayoutPlanner planner{problem};

    const std::vector<Division> divisions = candidate_divisions(planner);

    const auto named = [&](const std::string& name) {
        for (const Division& division : divisions)
            if (division.name == name)
                return division.workers;
        return Workers{};
    };
    EXPECT_EQ(named("data parallelism on the 3 ranks that hold the model"),
              (Workers{{0}, {2}, {4}}));
    EXPECT_EQ(named("3 ranks alone beside one worker of the other 3"),
              (Workers{{0}, {2}, {4}, {1, 3, 5}}));
    EXPECT_EQ(named("3 ranks alone beside one worker of each other host"),
              (Workers{{0}, {2}, {4}, {1}, {3, 5}}));
}

// Of 5,200 MiB, two thirds are the state's: the slow ranks hold the model with a sixth, and a
// fifth, of them, as long as the one with least memory stays away.
TEST(CandidateDivisionsTest, TheStateIsCutWhereMoreRanksHoldTheModelThen) {
    LayoutProblem problem = two_hosts();
    for (LayoutProblem::Size& size : problem.sizes) {
        size.chain.devices[1].memory_mb = 2700;
        size.chain.devices.push_back(size.chain.devices[1]);
        size.chain.devices[2].memory_mb = 1000;
        for (std::vector<ChainLink>& links : size.chain.links)
            links.resize(3);
        size.chain.links.emplace_back(3);
    }
    problem.class_of[5] = 2;
    problem.sharded_state_mb = [](std::size_t, std::size_t ranks) {
        return 1733 + 3467 / static_cast<double>(ranks);
    };
    LayoutPlanner planner{problem};

    const std::vector<Division> divisions = candidate_divisions(planner);

    const auto sharded = std::find_if(divisions.begin(), divisions.end(), [](const auto& division) {
        return division.state == WorkerState::sharded;
    });
    ASSERT_NE(sharded, divisions.end());
    EXPECT_EQ(sharded->name, "data parallelism on 5 ranks, each with a part of the state");
    EXPECT_EQ(sharded->workers, (Workers{{0}, {1}, {2}, {3}, {4}}));
    EXPECT_EQ(
        std::count_if(divisions.begin(),
                      divisions.end(),
                      [](const auto& division) { return division.state == WorkerState::sharded; }),
        1);
}

TEST(CandidateDivisionsTest, SomeHostsTogetherMayBeAWorker) {
    const LayoutProblem problem = large_cluster(32, 1000);
    LayoutPlanner planner{problem};

    const std::vector<Division> divisions = candidate_divisions(planner);

    const auto pairs = std::find_if(divisions.begin(), divisions.end(), [](const auto& division) {
        return division.name == "one worker of each 2 hosts";
    });
    ASSERT_NE(pairs, divisions.end());
    ASSERT_EQ(pairs->workers.size(), 2);
    EXPECT_EQ(pairs->workers[1].size(), 16);
    EXPECT_EQ(pairs->workers[1].front(), 16);
}

Workers some_of(const Workers& workers, std::size_t left_out) {
    Workers some;
    for (std::size_t w = 0; w < workers.size(); ++w)
        if ((left_out >> w & 1) == 0)
            some.push_back(workers[w]);
    return some;
}

// Each candidate planned by itself, and whatever division there is, of any ranks.
TEST(CompareLayoutsTest, TheFirstIsTheFastestCandidateAndNearTheBestDivision) {
    RandomLayouts layouts{41};
    int fitting = 0, best = 0, pipelines = 0;

    for (int instance = 0; instance < 200; ++instance) {
        const LayoutProblem problem = layouts.problem(4, 5, 16);
        LayoutPlanner planner{problem};
        double candidate_ms = std::numeric_limits<double>::infinity(), least_ms = candidate_ms;
        for (const Division& division : candidate_divisions(planner))
            if (const LayoutPlan plan = plan_workers(problem, division.workers, division.state);
                plan.fits())
                candidate_ms = std::min(candidate_ms, plan.update_ms);
        for (const Workers& workers : all_divisions(problem.ranks()))
            for (std::size_t left_out = 0; left_out < (1U << workers.size()) - 1; ++left_out)
                least_ms =
                    std::min(least_ms, AllPlans{problem, some_of(workers, left_out)}.update_ms);

        const std::vector<LayoutPlan> plans = compare_layouts(problem);

        ASSERT_EQ(plans.front().fits(), std::isfinite(candidate_ms)) << "instance " << instance;
        if (!plans.front().fits())
            continue;
        ASSERT_LE(plans.front().update_ms, candidate_ms + 1e-6) << "instance " << instance;
        ++fitting;
        best += plans.front().update_ms <= least_ms + 1e-6 ? 1 : 0;
        pipelines += plans.front().ranks() > plans.front().workers.size() ? 1 : 0;
        EXPECT_LE(plans.front().update_ms, 1.4 * least_ms + 1e-6) << "instance " << instance;
    }

    EXPECT_GT(fitting, 100);
    EXPECT_GT(best, 0.93 * fitting);
    EXPECT_GT(pipelines, 20);
}

TEST(CompareLayoutsTest, ThoseThatFitComeFirstFromTheFastestToTheSlowest) {
    const std::vector<LayoutPlan> plans = compare_layouts(large_cluster(16, 7000));

    std::set<std::string> names;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        names.insert(plans[i].name);
        if (i > 0 && plans[i].fits()) {
            EXPECT_TRUE(plans[i - 1].fits());
            EXPECT_GE(plans[i].update_ms, plans[i - 1].update_ms);
        }
    }
    EXPECT_EQ(names.size(), plans.size());
    EXPECT_TRUE(plans.front().fits());
    EXPECT_FALSE(plans.back().fits());
}

TEST(CompareLayoutsTest, OfEqualTimesFewerRanksComeFirst) {
    LayoutProblem problem = two_hosts();
    problem.batch = 1;
    problem.all_reduce_ms = [](std::span<const int>, double) { return 0.0; };
    problem.optimizer_ms = [](std::size_t, std::size_t, std::size_t) { return 0.0; };

    const std::vector<LayoutPlan> plans = compare_layouts(problem);

    EXPECT_EQ(plans.front().name, "rank 0 alone");
    EXPECT_GT(plans.size(), 3);
    EXPECT_EQ(plans[1].update_ms, plans[0].update_ms);
    EXPECT_GT(plans[1].ranks(), 1);
}

}  // namespace
}  // namespace hetseq
