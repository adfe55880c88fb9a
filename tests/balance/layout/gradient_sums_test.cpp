#include "balance/layout/gradient_sums.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

// Three units of 2 MiB of gradients and 1 ms of backward, four ranks of one class. A MiB takes a
// millisecond.
LayoutProblem three_units() {
    LayoutProblem problem;
    ChainProblem chain;
    chain.devices = {{.count = 4, .forward_ms = {1, 1, 1}, .backward_ms = {1, 1, 1}}};
    chain.links = {{{}}};
    chain.activations_mb = chain.gradients_mb = {1, 1, 1};
    chain.activations_mb_kept = chain.workspace_mb = {0, 0, 0};
    problem.sizes = {{1, chain}};
    problem.class_of = {0, 0, 0, 0};
    problem.all_reduce_ms = [](std::span<const int>, double mb) { return mb; };
    problem.gradients_mb = [](std::size_t begin, std::size_t end) {
        return 2 * static_cast<double>(end - begin);
    };
    return problem;
}

// Ranks 0 and 1, and 2 and 3, cut behind so many units.
struct TwoWorkers {
    TwoWorkers(std::size_t first, std::size_t second, double first_ms = 0, double second_ms = 0)
        : stages{{{0, 0, first}, {0, first, 3}}, {{0, 0, second}, {0, second, 3}}},
          workers{{ranks[0], stages[0], 0, first_ms, &kind},
                  {ranks[1], stages[1], 0, second_ms, &kind}} {}

    WorkerKind kind;  // links as in the chain
    std::vector<std::vector<int>> ranks{{0, 1}, {2, 3}};
    std::vector<std::vector<ChainStage>> stages;
    std::vector<SummedWorker> workers;
};

TEST(GradientSumsTest, SumsOfDifferentRanksRunBesideEachOther) {
    const LayoutProblem problem = three_units();

    EXPECT_EQ(GradientSums{problem}.end_ms(TwoWorkers{1, 1}.workers), 4);
}

// Units 2, 1 and 0 are summed by ranks 1 and 3, 1 and 2, 0 and 2.
TEST(GradientSumsTest, SumsThatShareARankFollowEachOther) {
    const LayoutProblem problem = three_units();

    EXPECT_EQ(GradientSums{problem}.end_ms(TwoWorkers{1, 2}.workers), 6);
    EXPECT_EQ(GradientSums{problem}.end_ms(TwoWorkers{1, 2}.workers, 0.5), 3);
}

// The second worker has the gradients of units 2, 1, 0 at 18, 19 and 20.
TEST(GradientSumsTest, EachUnitAwaitsTheBackwardOfTheSlowestWorker) {
    const LayoutProblem problem = three_units();

    EXPECT_EQ(GradientSums{problem}.end_ms(TwoWorkers{1, 1, 3, 20}.workers), 22);
}

// Gradients cross the link for 5 ms between unit 1, at 14, and unit 0, at 20. Unit 2's are there at
// 13; its sum and that of unit 1 take 8 ms each.
TEST(GradientSumsTest, GradientsOfUnitsBehindASlowLinkAreThereEarlier) {
    LayoutProblem problem = three_units();
    problem.sizes[0].chain.links = {{{.latency_ms = 4, .ms_per_mb = 1}}};
    problem.gradients_mb = [](std::size_t begin, std::size_t end) {
        return begin == 0 && end > 0 ? 0.25 + 8 * static_cast<double>(end - 1)
                                     : 8 * static_cast<double>(end - begin);
    };

    const double end_ms = GradientSums{problem}.end_ms(TwoWorkers{1, 1, 20, 20}.workers);

    EXPECT_EQ(end_ms, 13 + 16);
}

TEST(GradientSumsTest, ARankAloneSumsNothing) {
    const LayoutProblem problem = three_units();
    const std::vector<int> rank{2};
    const std::vector<ChainStage> stage{{0, 0, 3}};
    const WorkerKind kind;
    const SummedWorker worker{rank, stage, 0, 7, &kind};

    EXPECT_EQ(GradientSums{problem}.end_ms({&worker, 1}), 0);
    EXPECT_EQ(GradientSums{problem}.whole_ms(rank), 0);
}

// The first and the last unit share 1.5 of their 2 MiB.
LayoutProblem tied_units() {
    LayoutProblem problem = three_units();
    problem.gradients_mb = [](std::size_t begin, std::size_t end) {
        return 2 * static_cast<double>(end - begin) - (begin == 0 && end == 3 ? 1.5 : 0);
    };
    return problem;
}

TEST(GradientSumsTest, FindsWhichUnitsShareParameters) {
    const LayoutProblem problem = tied_units();

    const GradientSums sums{problem};

    ASSERT_EQ(sums.tied().size(), 1);
    EXPECT_EQ(sums.tied()[0].first, 0);
    EXPECT_EQ(sums.tied()[0].second, 2);
    EXPECT_DOUBLE_EQ(sums.tied()[0].mb, 1.5);
    EXPECT_TRUE(GradientSums{three_units()}.tied().empty());
}

// Of the units 1 and 2, ranks 1 and 3 sum 2.5 MiB, of unit 0 the others 0.5; then all sum 1.5.
TEST(GradientSumsTest, TiedParametersAreSummedLastByAllThatHoldThem) {
    const LayoutProblem problem = tied_units();
    const TwoWorkers two{1, 1};
    int holders = 0;
    LayoutProblem counting = problem;
    counting.all_reduce_ms = [&](std::span<const int> ranks, double mb) {
        holders = static_cast<int>(ranks.size());
        return mb;
    };

    EXPECT_EQ(GradientSums{problem}.end_ms(two.workers), 4);
    EXPECT_EQ(GradientSums{counting}.end_ms(two.workers), 4);
    EXPECT_EQ(holders, 4);
    EXPECT_EQ(GradientSums{problem}.end_ms({two.workers.data(), 1}), 1.5);
}

// Backward ends at 20 in stage 0, and at 19 in stage 1. A MiB takes 3 ms.
TEST(GradientSumsTest, TwoStagesOfOneWorkerSendEachOtherWhatTheyShare) {
    LayoutProblem problem = tied_units();
    ChainProblem& chain = problem.sizes[0].chain;
    chain.links = {{{.ms_per_mb = 3}}};
    chain.gradients_mb = {0, 0, 0};  // no messages in backward
    const TwoWorkers two{1, 1, 20};
    const auto end_ms = [&](std::vector<double> filled) {
        chain.tied = {{{0, 2}, 1.5, std::move(filled)}};
        return GradientSums{problem}.end_ms({two.workers.data(), 1});
    };

    EXPECT_EQ(end_ms({0.5, 1}), 19 + 4.5);
    EXPECT_EQ(end_ms({0.5, 0}), 20 + 2.25);
    EXPECT_EQ(end_ms({}), 20 + 4.5);
}

TEST(GradientSumsTest, ThreeStagesOfOneWorkerSumTogetherWhatTheyShare) {
    LayoutProblem problem = tied_units();
    problem.sizes[0].chain.tied = {{{0, 1, 2}, 1.5}};
    const std::vector<int> ranks{0, 1, 2};
    const std::vector<ChainStage> stages{{0, 0, 1}, {0, 1, 2}, {0, 2, 3}};
    const WorkerKind kind;
    const SummedWorker worker{ranks, stages, 0, 20, &kind};

    EXPECT_EQ(GradientSums{problem}.end_ms({&worker, 1}), 20 + 1.5);
}

}  // namespace
}  // namespace hetseq
