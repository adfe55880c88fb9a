// A state that is cut over ranks gives what one gives that each rank holds: the same bits.
#include <cmath>
#include <limits>
#include <new>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

#include "test_world.hpp"
#include "train/toy_model.hpp"
#include "train/toy_run.hpp"

namespace hetseq::test {
namespace {

class ShardingTest : public testing::Test {
protected:
    static void SetUpTestSuite() {
        world = new HostComm(test::world());
        corpus = new std::string(write_toy_corpus(*world, 53));
    }
    static void TearDownTestSuite() {
        remove_toy_corpus(*world, *corpus);
        delete corpus;
        delete world;
    }

    // Shares of 0 included; the embedding, of three blocks, is summed directly.
    static ToyRun run() {
        const std::vector<std::int64_t> all{3, 1, 0, 2};
        return {.data = *corpus,
                .capacities = {all.begin(), all.begin() + world->size()},
                .updates = 3,
                .dropout = 0.1,
                .dtype = at::kFloat,
                .stretch = 250};
    }

    // Even; all to the first, or to the last; 3 to 0 to 1 to 2.
    static std::vector<std::vector<std::int64_t>> cuts() {
        const auto ranks = static_cast<std::size_t>(world->size());
        std::vector<std::int64_t> even(ranks, 1), first(ranks, 0), last(ranks, 0);
        first.front() = last.back() = 1;
        const std::vector<std::int64_t> all{3, 0, 1, 2};
        return {even, first, last, {all.begin(), all.begin() + world->size()}};
    }

    static ToyResult train(const ToyRun& run) { return train_toy(environment(), *world, run); }

    static void expect_same_bits(ToyRun run,
                                 const std::vector<std::vector<std::int64_t>>& shards = cuts()) {
        const ToyResult whole = train(run);
        for (const auto& parts : shards) {
            run.shards = parts;
            const ToyResult cut = train(run);
            EXPECT_TRUE(at::equal(cut.parameters, whole.parameters))
                << run.optimizer << ", rank 0 has " << parts.front() << ", off by "
                << (cut.parameters - whole.parameters).abs().max().item<double>();
            EXPECT_EQ(cut.losses, whole.losses);
            EXPECT_EQ(cut.report.skipped, whole.report.skipped);
        }
    }

    static HostComm* world;
    static std::string* corpus;
};

HostComm* ShardingTest::world = nullptr;
std::string* ShardingTest::corpus = nullptr;

TEST_F(ShardingTest, EachOptimizerGivesTheSameBitsWithAndWithoutClipping) {
    const auto all = cuts();
    for (const char* optimizer : {"adam", "adamw", "lamb", "sgd", "momentum", "adadelta"}) {
        ToyRun clipped = run();
        clipped.optimizer = optimizer;
        expect_same_bits(clipped, {all[0], all[1]});
        clipped.clip_norm = 0.05;
        expect_same_bits(clipped, {all[2], all[3]});
    }
}

TEST_F(ShardingTest, InDoublePrecisionAndOneBucket) {
    for (const std::int64_t bucket_bytes : {1, 1 << 20}) {
        ToyRun wide = run();
        wide.dtype = at::kDouble;
        wide.optimizer = "lamb";
        wide.clip_norm = 0.05;
        wide.bucket_bytes = bucket_bytes;
        expect_same_bits(wide);
    }
}

TEST_F(ShardingTest, RunningOutOfMemoryRepeatsTheUpdate) {
    ToyRun small = run();
    small.capacities.assign(small.capacities.size(), 5);
    small.clip_norm = 0.05;
    const ToyResult whole = train(small);
    int failures = 0;
    small.spoil = [&](const MicroBatch& batch, const ForwardContext& context, ForwardResult&) {
        if (world->rank() == world->size() - 1 && context.update == 1 && batch.samples > 2) {
            ++failures;
            throw std::bad_alloc();
        }
    };
    for (const auto& parts : cuts()) {
        small.shards = parts;
        const ToyResult cut = train(small);
        EXPECT_TRUE(at::allclose(cut.parameters, whole.parameters, 1e-4, 1e-5));
    }
    EXPECT_EQ(failures > 0, world->rank() == world->size() - 1);
}

// Of one rank: all leave the update out, and the values stay.
TEST_F(ShardingTest, AnUpdateThatIsNotFiniteIsLeftOut) {
    ToyRun bad = run();
    bad.clip_norm = 0.05;
    bad.spoil = [](const MicroBatch&, const ForwardContext& context, ForwardResult& result) {
        if (world->rank() == 0 && context.update == 1)
            result.losses[0] = result.losses[0] * std::numeric_limits<double>::quiet_NaN();
    };
    expect_same_bits(bad);
    EXPECT_EQ(train(bad).report.skipped, 1);
}

TEST_F(ShardingTest, ALossScaleIsTakenOutWithAndWithoutShards) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
        ToyRun scaled = run();
        scaled.dtype = type;
        scaled.clip_norm = 0.05;
        const ToyResult plain = train(scaled);
        scaled.loss_scale = LossScale{LossScale::State{}};  // 65,536
        EXPECT_TRUE(at::equal(train(scaled).parameters, plain.parameters)) << type;
        scaled.shards = cuts().back();
        EXPECT_TRUE(at::equal(train(scaled).parameters, plain.parameters)) << type;
    }
}

TEST_F(ShardingTest, AllRanksHoldTheSameBitsAndKnowIt) {
    ToyRun checked = run();
    checked.check_interval = 1;
    checked.drift = DriftPolicy::abort;
    checked.validate = true;
    checked.shards = cuts().back();

    const ToyResult result = train(checked);

    const std::string own(static_cast<const char*>(result.parameters.const_data_ptr()),
                          result.parameters.nbytes());
    EXPECT_EQ(world->broadcast(own, 0), own);
    EXPECT_TRUE(result.report.last_valid.has_value());
}

}  // namespace
}  // namespace hetseq::test
