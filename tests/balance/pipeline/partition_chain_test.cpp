#include "hetseq/balance/pipeline/partition_chain.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

#include "balance/pipeline/chain_reference.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

using ChainStages = std::vector<ChainStage>;

// All units alike: 1 ms forward and 2 ms backward on the only class; 10 MiB of state each, 2 kept
// for a micro-batch, 3 of workspace; messages of 1 MiB that take no time.
ChainProblem even_chain(std::size_t units, std::size_t devices, double memory_mb) {
    ChainProblem problem;
    problem.devices = {{.count = devices,
                        .forward_ms = std::vector<double>(units, 1),
                        .backward_ms = std::vector<double>(units, 2),
                        .memory_mb = memory_mb,
                        .process_mb = 5}};
    problem.links = {{{}}};
    problem.activations_mb.assign(units, 1);
    problem.gradients_mb.assign(units, 1);
    problem.activations_mb_kept.assign(units, 2);
    problem.workspace_mb.assign(units, 3);
    problem.state_mb = [](std::size_t begin, std::size_t end, std::size_t) {
        return 10 * static_cast<double>(end - begin);
    };
    return problem;
}

// Another class with as many devices, `slowness` times as slow, that all links reach at once.
void add_class(ChainProblem& problem, double slowness) {
    ChainDevices devices = problem.devices.front();
    for (std::size_t u = 0; u < problem.units(); ++u) {
        devices.forward_ms[u] *= slowness;
        devices.backward_ms[u] *= slowness;
    }
    problem.devices.push_back(devices);
    problem.links.assign(problem.devices.size(), std::vector<ChainLink>(problem.devices.size()));
}

// Of the 8 of the least score and the best single stage.
std::vector<ChainStage> fastest(const AllCuts& all) {
    std::vector<AllCuts::Cut> cuts{
        all.fitting.begin(),
        all.fitting.begin() + std::min<std::ptrdiff_t>(8, std::ssize(all.fitting))};
    const auto single = std::find_if(all.fitting.begin(), all.fitting.end(), [](const auto& cut) {
        return cut.stages.size() == 1;
    });
    if (single != all.fitting.end())
        cuts.push_back(*single);
    const auto key = [&](const AllCuts::Cut& cut) {
        return std::tuple(all.simulated_ms(cut.stages), cut.stages.size(), cut.stages);
    };
    return std::min_element(cuts.begin(),
                            cuts.end(),
                            [&](const auto& a, const auto& b) { return key(a) < key(b); })
        ->stages;
}

// Two stages of 3 ms, whose messages take 3 ms each way.
ChainProblem chain_on_slow_links(double memory_mb) {
    ChainProblem problem = even_chain(2, 2, memory_mb);
    problem.links = {{{.latency_ms = 0, .ms_per_mb = 3}}};
    problem.micro_batches = 20;
    return problem;
}
const ChainStages two_stages{{0, 0, 1}, {0, 1, 2}};

// With 2 micro-batches in flight the first stage waits for gradients: 3 + 3 + 3 + 3 ms for each 2.
TEST(PartitionChainTest, MoreMicroBatchesInFlightHideSlowLinks) {
    const ChainProblem problem = chain_on_slow_links(1000);
    const PipelineCut cut = evaluate_cut(problem, two_stages);

    const PipelineCut more = with_more_in_flight(problem, cut);

    EXPECT_EQ(more.extra_in_flight, 1U);
    EXPECT_LT(more.predicted_ms, 0.8 * cut.predicted_ms);
    EXPECT_DOUBLE_EQ(more.memory.front().needed_mb - cut.memory.front().needed_mb, 2);
    EXPECT_EQ(more.memory.back().needed_mb, cut.memory.back().needed_mb);
}

TEST(PartitionChainTest, MoreMicroBatchesAreInFlightOnlyWhereMemoryHoldsThem) {
    const double needed = evaluate_cut(chain_on_slow_links(1000), two_stages).memory[0].needed_mb;
    const ChainProblem problem = chain_on_slow_links(needed + 1);

    const PipelineCut more = with_more_in_flight(problem, evaluate_cut(problem, two_stages));

    EXPECT_EQ(more.extra_in_flight, 0U);
}

TEST(PartitionChainTest, NoMoreMicroBatchesAreInFlightOnFastLinks) {
    ChainProblem problem = chain_on_slow_links(1000);
    problem.links = {{{}}};

    const PipelineCut more = with_more_in_flight(problem, evaluate_cut(problem, two_stages));

    EXPECT_EQ(more.extra_in_flight, 0U);
}

TEST(PartitionChainTest, EqualsBruteForce) {
    RandomChains chains{7};
    int without = 0;

    for (int instance = 0; instance < 5000; ++instance) {
        const ChainProblem problem = chains.problem(5, 8);
        const AllCuts all{problem};

        const PipelineCut cut = partition_chain(problem);

        ASSERT_EQ(cut.fits(), !all.fitting.empty()) << "instance " << instance;
        if (cut.fits()) {
            ASSERT_EQ(cut.stages, fastest(all)) << "instance " << instance;
            ASSERT_EQ(cut.predicted_ms, all.simulated_ms(cut.stages)) << "instance " << instance;
            continue;
        }
        ++without;
        ASSERT_EQ(cut.stages, all.nearest) << "instance " << instance;
        ASSERT_EQ(cut.memory[cut.tightest()].overshoot_mb(), all.nearest_overshoot_mb)
            << "instance " << instance;
    }

    EXPECT_GT(without, 300);
}

TEST(PartitionChainTest, LikeDevicesGetLikeParts) {
    ChainProblem problem = even_chain(8, 4, 1000);
    problem.micro_batches = 16;

    const PipelineCut cut = partition_chain(problem);

    EXPECT_THAT(
        cut.stages,
        ElementsAre(
            ChainStage{0, 0, 2}, ChainStage{0, 2, 4}, ChainStage{0, 4, 6}, ChainStage{0, 6, 8}));
    EXPECT_EQ(cut.period_ms, 6);
    EXPECT_EQ(cut.predicted_ms, (16 + 4 - 1) * 6);
    EXPECT_EQ(cut.score_ms, cut.predicted_ms);
    EXPECT_DOUBLE_EQ(cut.bubble, 3.0 / 19);
}

TEST(PartitionChainTest, AFastDeviceGetsMoreAndOneThatIsTooSlowIdles) {
    ChainProblem problem = even_chain(6, 1, 1000);
    problem.micro_batches = 16;
    add_class(problem, 2);
    add_class(problem, 100);

    EXPECT_THAT(partition_chain(problem).stages,
                ElementsAre(ChainStage{0, 0, 4}, ChainStage{1, 4, 6}));
}

// By the score, a micro-batch takes 25 ms of a link, or 33 ms of a stage, and 36 ms of one device:
// 11 cuts look better. But only two are in flight, and one takes 36 + 2 * 25 ms.
TEST(PartitionChainTest, SlowLinksLeaveAllToOneDeviceWhateverTheScoreSays) {
    ChainProblem problem = even_chain(12, 2, 1000);
    problem.micro_batches = 64;
    problem.links = {{{.latency_ms = 25}}};

    const PipelineCut cut = partition_chain(problem);

    EXPECT_THAT(cut.stages, ElementsAre(ChainStage{0, 0, 12}));
    EXPECT_EQ(cut.predicted_ms, 64 * 36);
    EXPECT_LT(evaluate_cut(problem, ChainStages{{0, 0, 1}, {0, 1, 12}}).score_ms, cut.score_ms);
}

// The first stage has more micro-batches in flight, and so fewer units in the same memory: four
// units take 5 + 40 + 3 + q * 8, and a MiB for a message.
TEST(PartitionChainTest, TheFirstStageHasLessRoom) {
    ChainProblem problem = even_chain(7, 2, 59);
    problem.micro_batches = 16;

    const PipelineCut cut = partition_chain(problem);

    EXPECT_THAT(cut.stages, ElementsAre(ChainStage{0, 0, 3}, ChainStage{0, 3, 7}));
    EXPECT_TRUE(cut.fits());
}

TEST(PartitionChainTest, TiedParametersStayTogetherWhereMemoryIsShort) {
    ChainProblem problem = even_chain(4, 1, 71);
    add_class(problem, 1);
    problem.devices[1].memory_mb = 140;
    problem.micro_batches = 16;
    problem.state_mb = [](std::size_t begin, std::size_t end, std::size_t) {
        return 10 * static_cast<double>(end - begin) + (begin == 0 || end == 4 ? 60 : 0);
    };

    // Alone: 5 + 3 + 100 + 8. In halves, the class with less would need 5 + 3 + 80 + 4 at least.
    EXPECT_THAT(partition_chain(problem).stages, ElementsAre(ChainStage{1, 0, 4}));
}

// 6 units on two devices: at best three each, and the first stage has two micro-batches in flight.
TEST(PartitionChainTest, WhatDoesNotFitSaysHowMuchIsMissing) {
    const ChainProblem problem = even_chain(6, 2, 40);

    const PipelineCut cut = partition_chain(problem);

    EXPECT_FALSE(cut.fits());
    EXPECT_THAT(cut.stages, ElementsAre(ChainStage{0, 0, 3}, ChainStage{0, 3, 6}));
    EXPECT_EQ(cut.tightest(), 0);
    EXPECT_EQ(cut.memory[0].needed_mb, 5 + 30 + 2 * 6 + 1 + 3);
    EXPECT_EQ(cut.memory[1].needed_mb, 5 + 30 + 6 + 1 + 3);
    EXPECT_EQ(cut.memory[0].usable_mb, 40);
    EXPECT_EQ(cut.memory[0].overshoot_mb(), 11);
}

TEST(EvaluateCutTest, GivesTheNumbersOfAnyCut) {
    ChainProblem problem = even_chain(4, 1, 60);
    add_class(problem, 2);
    problem.devices[1].memory_mb = 20;
    problem.links[0][1] = {.latency_ms = 1, .ms_per_mb = 2};
    problem.links[1][0] = {.latency_ms = 0.5, .ms_per_mb = 4};
    problem.gradients_mb[2] = 0.5;
    problem.micro_batches = 2;

    const PipelineCut cut = evaluate_cut(problem, ChainStages{{0, 0, 3}, {1, 3, 4}});

    EXPECT_EQ(cut.memory[0].needed_mb, 5 + 30 + 2 * 6 + 1 + 3);
    EXPECT_EQ(cut.memory[1].needed_mb, 5 + 10 + 2 + 1 + 3);
    EXPECT_EQ(cut.tightest(), 1);
    EXPECT_FALSE(cut.fits());
    EXPECT_EQ(cut.period_ms, 9);
    EXPECT_EQ(cut.score_ms, 9 + (9 + 3 + 2.5 + 6));
    // Stage 0: F 0-3, 3-6; activations 3-6, 6-9. Stage 1: F 6-8, B 8-12, F 12-14, B 14-18.
    // Gradients 12-14.5, 18-20.5. Stage 0: B 14.5-20.5, 20.5-26.5.
    EXPECT_EQ(cut.predicted_ms, 26.5);
    EXPECT_DOUBLE_EQ(cut.bubble, 1 - (18 + 12) / 53.0);
}

TEST(EvaluateCutTest, WhereNothingTrainsInFrontNoGradientsAreAwaited) {
    ChainProblem problem = even_chain(2, 2, 100);
    problem.links = {{{.latency_ms = 7}}};
    problem.gradients_mb[0] = 0;
    problem.devices[0].backward_ms[0] = 0;

    const PipelineCut cut = evaluate_cut(problem, ChainStages{{0, 0, 1}, {0, 1, 2}});

    EXPECT_EQ(cut.score_ms, 1 + 7 + 3);
    EXPECT_EQ(cut.predicted_ms, cut.score_ms);
}

// The stage in the middle sends 1 MiB each way, and gets as much.
TEST(EvaluateCutTest, MessagesToBothNeighboursShareACard) {
    ChainProblem problem = even_chain(3, 3, 100);
    problem.links = {{{.latency_ms = 0, .ms_per_mb = 2}}};
    problem.micro_batches = 8;
    const ChainStages stages{{0, 0, 1}, {0, 1, 2}, {0, 2, 3}};

    const PipelineCut on_own_hosts = evaluate_cut(problem, stages);
    problem.devices[0].host = 1;
    const PipelineCut on_one_host = evaluate_cut(problem, stages);

    EXPECT_EQ(on_own_hosts.period_ms, 4);
    EXPECT_EQ(on_own_hosts.score_ms, 7 * 4 + 3 * 3 + 4 * 2);
    EXPECT_EQ(on_one_host.period_ms, 3);
    EXPECT_EQ(on_one_host.score_ms, 7 * 3 + 3 * 3 + 4 * 2);
}

// Each sends the other 8 MiB when it is through, the first one at the end: 1 + 8 * 2 ms.
TEST(EvaluateCutTest, TiedParametersAreSummedAtTheEnd) {
    ChainProblem problem = even_chain(3, 3, 100);
    problem.links = {{{.latency_ms = 1, .ms_per_mb = 2}}};
    const ChainStages two{{0, 0, 1}, {0, 1, 3}}, one{{0, 0, 3}};
    const PipelineCut untied = evaluate_cut(problem, two);
    problem.tied = {{{0, 2}, 8}};

    const PipelineCut tied = evaluate_cut(problem, two);

    EXPECT_EQ(tied.predicted_ms, untied.predicted_ms + 17);
    EXPECT_DOUBLE_EQ(tied.bubble, 1 - 9 / (2 * tied.predicted_ms));
    EXPECT_EQ(tied.score_ms, untied.score_ms);
    EXPECT_EQ(evaluate_cut(problem, one).predicted_ms, 9);
}

// Of its 8 MiB the first stage has filled a quarter: 1 + 2 * 2 ms. The last one is through 3 + 2 ms
// before it: what it sends may take longer by that.
TEST(EvaluateCutTest, TheStageThatIsThroughFirstSendsItsGradientsMeanwhile) {
    ChainProblem problem = even_chain(3, 3, 100);
    problem.links = {{{.latency_ms = 1, .ms_per_mb = 2}}};
    const ChainStages two{{0, 0, 1}, {0, 1, 3}};
    const double untied_ms = evaluate_cut(problem, two).predicted_ms;
    const auto predicted_ms = [&](double of_first, double of_last) {
        problem.tied = {{{0, 2}, 8, {of_first, of_last}}};
        return evaluate_cut(problem, two).predicted_ms;
    };

    EXPECT_EQ(predicted_ms(0.25, 0.5), untied_ms + 5);
    EXPECT_EQ(predicted_ms(0, 0.125), untied_ms + 1);
    EXPECT_EQ(predicted_ms(0.25, 1), untied_ms + 17 - 5);
}

// The last two stages sum theirs while the first one awaits gradients, 3 ms, and has its backward,
// 2 ms.
TEST(EvaluateCutTest, TiedParametersMayBeSummedBeforeTheFirstStageIsDone) {
    ChainProblem problem = even_chain(3, 3, 100);
    problem.links = {{{.latency_ms = 1, .ms_per_mb = 2}}};
    const ChainStages stages{{0, 0, 1}, {0, 1, 2}, {0, 2, 3}};
    const double untied_ms = evaluate_cut(problem, stages).predicted_ms;

    problem.tied = {{{1, 2}, 2}};
    EXPECT_EQ(evaluate_cut(problem, stages).predicted_ms, untied_ms);  // 1 + 2 * 2 ms
    problem.tied = {{{1, 2}, 2}, {{0, 1}, 1}};  // the first one sends 1 + 2 ms behind its end
    EXPECT_EQ(evaluate_cut(problem, stages).predicted_ms, untied_ms + 3);
}

// Thirds of 2 MiB go round twice, when all are through: 4 * (1 + 2 * 2) ms.
TEST(EvaluateCutTest, ThreeStagesSumTogether) {
    ChainProblem problem = even_chain(3, 3, 100);
    problem.links = {{{.latency_ms = 1, .ms_per_mb = 2}}};
    const ChainStages stages{{0, 0, 1}, {0, 1, 2}, {0, 2, 3}};
    const double untied_ms = evaluate_cut(problem, stages).predicted_ms;

    problem.tied = {{{0, 1, 2}, 6}};

    EXPECT_EQ(evaluate_cut(problem, stages).predicted_ms, untied_ms + 20);
}

// The sizes of a large job. Prints the time; asserts what holds on any machine.
void cut_large_chain(std::size_t units, std::size_t devices_a_class) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> spread(0.8, 1.2);
    ChainProblem problem = even_chain(units, devices_a_class, 600);
    for (const double slowness : {1.5, 2.0, 4.0})
        add_class(problem, slowness);
    for (ChainDevices& devices : problem.devices)
        for (double& ms : devices.backward_ms)
            ms *= spread(random);
    for (std::vector<ChainLink>& links : problem.links)
        for (ChainLink& link : links)
            link = {.latency_ms = 0.1, .ms_per_mb = spread(random)};
    problem.micro_batches = 32;

    const auto begin = std::chrono::steady_clock::now();
    const PipelineCut cut = partition_chain(problem);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;

    std::cout << units << " units: " << took.count() << " ms\n";
    EXPECT_TRUE(cut.fits());
    EXPECT_EQ(cut.stages.front().begin, 0);
    EXPECT_EQ(cut.stages.back().end, units);
    EXPECT_GT(cut.stages.size(), devices_a_class);
    EXPECT_LT(cut.bubble, 0.5);
}

TEST(PartitionChainTest, LargeChainsOnManyDevices) {
    cut_large_chain(26, 2);
    cut_large_chain(100, 4);
}

}  // namespace
}  // namespace hetseq
