// Pipelines that are data parallel among themselves, cut in unlike ways, train what one rank does.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "train/pipeline/staged_test.hpp"

namespace hetseq::test {
namespace {

namespace fs = std::filesystem;

// Of a model of so many units: two pipelines, of which one may be a single rank. The second one is
// cut otherwise, and its ranks stand the other way around.
StagedCase two_workers(const std::string& name, int ranks) {
    StagedCase staged{.model = model_named(name), .precision = Precision::fp64};
    const std::size_t units = staged.chain_length();
    const int first = ranks - ranks / 2;
    const auto of_first = all_cuts(units, static_cast<std::size_t>(first));
    const auto of_second = all_cuts(units, static_cast<std::size_t>(ranks - first));
    staged.units = of_first.front();
    for (int rank = 0; rank < first; ++rank)
        staged.ranks.push_back(rank);
    StagedWorker second{of_second.back(), {}};
    for (int rank = ranks; rank-- > first;)
        second.ranks.push_back(rank);
    staged.others = {second};
    return staged;
}

class SeveralWorkersTest : public StagedTest {
protected:
    StagedRun run_of(const std::string& name) const {
        return {.staged = two_workers(name, world->size()),
                .data = *corpus,
                .batch = 11,
                .micro_batches = {2, 3},
                .updates = 4};
    }
    static StagedRun alone(StagedRun run) {
        run.staged = run.staged.whole();
        run.micro_batches = {};
        return run;
    }
    static double furthest(const StagedResult& result, const StagedResult& expected) {
        double largest = 0;
        for (const auto& [name, values] : result.values)
            largest =
                std::max(largest, (values - expected.values.at(name)).abs().max().item<double>());
        return world->all_reduce(largest, ReduceOp::max);
    }
    // The bits of each parameter are the same wherever it is held.
    static void expect_same_everywhere(const StagedResult& result, const StagedResult& expected) {
        for (const auto& [name, whole] : expected.values) {
            using Limits = std::numeric_limits<std::int64_t>;
            const auto found = result.values.find(name);
            const bool is_here = found != result.values.end();
            const std::int64_t bits = is_here ? bits_of(found->second) : 0;
            EXPECT_GE(world->all_reduce(std::int64_t{is_here}, ReduceOp::sum), 2) << name;
            EXPECT_EQ(world->all_reduce(is_here ? bits : Limits::min(), ReduceOp::max),
                      world->all_reduce(is_here ? bits : Limits::max(), ReduceOp::min))
                << name;
        }
    }
    static void expect_near_one_rank(const StagedRun& run, double tolerance) {
        const StagedResult expected = train_on_first_rank(alone(run), *world);
        const StagedResult result = train_staged(run, *world);

        EXPECT_LE(furthest(result, expected), tolerance);
        EXPECT_EQ(result.losses.size(), expected.losses.size());
        expect_same_everywhere(result, expected);
    }
};

// The last batch of an epoch is smaller, gradients are clipped, and dropout is on. LAMB's norms are
// of whole parameters.
TEST_F(SeveralWorkersTest, TrainWhatOneRankDoes) {
    for (const auto& [name, optimizer] : {std::pair{"Mnist", "sgd"},
                                          {"Bert", "lamb"},
                                          {"TiedBert", "sgd"},
                                          {"SharedByAllPreNorm", "sgd"},
                                          {"SharedByAllPreNorm", "lamb"}}) {
        SCOPED_TRACE(std::string(name) + " " + optimizer);
        StagedRun run = run_of(name);
        run.optimizer = optimizer;

        // LAMB takes a gradient of 0 and one of 1e-17 for unlike steps.
        expect_near_one_rank(run, optimizer == std::string("sgd") ? 1e-12 : 1e-7);
    }
}

TEST_F(SeveralWorkersTest, AWorkerWithoutAShareHasTheSameParameters) {
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{0, 3}, std::vector<std::int64_t>{2, 0}}) {
        StagedRun run = run_of("TiedBert");
        run.optimizer = "sgd";
        run.micro_batches = sizes;

        expect_near_one_rank(run, 1e-12);
    }
}

// Sums of several updates are under way at once, among the ranks of each group.
TEST_F(SeveralWorkersTest, LateUpdatesAreThoseOfOneRank) {
    for (const std::int64_t staleness : {1, 3}) {
        SCOPED_TRACE(staleness);
        StagedRun run = run_of("TiedBert");
        run.optimizer = "sgd";
        run.updates = 8;
        run.staleness = staleness;

        expect_near_one_rank(run, 1e-12);
    }
}

// The norm that clips is of the sums in bf16, not of what a rank adds to them.
TEST_F(SeveralWorkersTest, LateGradientsInBf16AreClippedByTheNormOfTheirSums) {
    for (const std::int64_t staleness : {0, 1}) {
        SCOPED_TRACE(staleness);
        StagedRun run = run_of("TiedBert");
        run.staged.precision = Precision::fp32;
        run.sent_type = at::kBFloat16;
        run.optimizer = "sgd";
        run.staleness = staleness;

        expect_near_one_rank(run, 2e-5);
    }
}

// Loading takes unlike times by rank and sample, and with it each wave of each pipeline.
TEST_F(SeveralWorkersTest, HowFastRanksAreChangesNoByte) {
    for (const std::int64_t staleness : {0, 1, 2}) {
        SCOPED_TRACE(staleness);
        StagedRun run = run_of("TiedBert");
        run.staleness = staleness;
        const StagedResult expected = train_staged(run, *world);
        const auto batch = run.staged.model.batch;
        run.staged.model.batch = [batch, rank = world->rank()](std::int64_t begin,
                                                               std::int64_t count) {
            std::this_thread::sleep_for(std::chrono::milliseconds((7 * begin + 5 * rank) % 13));
            return batch(begin, count);
        };

        const StagedResult result = train_staged(run, *world);

        EXPECT_EQ(result.losses, expected.losses);
        for (const auto& [name, values] : result.values)
            EXPECT_EQ(bits_of(values), bits_of(expected.values.at(name))) << name;
    }
}

// One sample for two pipelines.
TEST_F(SeveralWorkersTest, ABatchMayBeSmallerThanTheWorkersAreMany) {
    StagedRun run = run_of("Mnist");
    run.optimizer = "sgd";
    run.batch = 1;

    const StagedResult expected = train_on_first_rank(alone(run), *world);

    EXPECT_LE(furthest(train_staged(run, *world), expected), 1e-12);
}

TEST_F(SeveralWorkersTest, GoOnFromEachOthersCheckpoints) {
    StagedRun first = run_of("TiedBert"), second = run_of("TiedBert"), whole = run_of("TiedBert");
    for (StagedRun* const run : {&first, &second, &whole})
        run->optimizer = "sgd";
    first.updates = 3;
    // All ranks are one pipeline where there are two workers before.
    second.staged.others.clear();
    second.staged.ranks.clear();
    second.staged.units =
        all_cuts(second.staged.chain_length(), static_cast<std::size_t>(world->size())).back();
    second.micro_batches = {};
    second.updates = 6;
    whole.updates = 9;

    second.from = trained(first, "first");
    StagedRun third = whole;
    third.from = trained(second, "second");
    const StagedResult result = train_staged(third, *world);

    EXPECT_LE(furthest(result, train_on_first_rank(alone(whole), *world)), 1e-12);
    EXPECT_EQ(result.report.updates, 9);
}

// Sums that were under way are in the checkpoint, each part where it is held.
TEST_F(SeveralWorkersTest, LateUpdatesGoOnFromACheckpointInTheMiddle) {
    StagedRun whole = run_of("TiedBert"), first = run_of("TiedBert");
    for (StagedRun* const run : {&whole, &first})
        run->staleness = 2, run->updates = 6;
    first.stop_after = 3;
    const StagedResult expected = train_staged(whole, *world);
    StagedRun second = whole;

    second.from = trained(first, "late", 3);
    const StagedResult result = train_staged(second, *world);

    EXPECT_EQ(result.report.updates, whole.updates);
    for (const auto& [name, values] : result.values)
        EXPECT_EQ(bits_of(values), bits_of(expected.values.at(name))) << name;
}

TEST_F(SeveralWorkersTest, ValidationHasTheNumbersOfOneRank) {
    for (const char* name : {"Mnist", "BertInRows", "Transformer"}) {
        SCOPED_TRACE(name);
        const StagedRun run = run_of(name);
        const Evaluation expected = evaluate_staged(alone(run), HostComm::serial());

        const Evaluation found = evaluate_staged(run, *world);

        EXPECT_EQ(found.samples, samples);
        ASSERT_EQ(found.losses.size(), expected.losses.size());
        for (std::size_t i = 0; i < expected.losses.size(); ++i)
            EXPECT_NEAR(found.losses[i].value, expected.losses[i].value, 1e-12);
        for (std::size_t i = 0; i < expected.metrics.size(); ++i)
            EXPECT_NEAR(found.metrics[i].value, expected.metrics[i].value, 1e-12);
    }
}

}  // namespace
}  // namespace hetseq::test
