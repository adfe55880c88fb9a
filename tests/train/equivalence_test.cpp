// Invariant 1 of docs/architecture.md: any number of ranks, any allocation, zero-sized shares
// included, dropout on or off, give what one rank gives.
#include <algorithm>
#include <chrono>
#include <new>
#include <span>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

#include "test_world.hpp"
#include "train/toy_model.hpp"
#include "train/toy_run.hpp"

namespace hetseq::test {
namespace {

class EquivalenceTest : public testing::Test {
protected:
    static void SetUpTestSuite() {
        world = new HostComm(test::world());
        corpus = new std::string(write_toy_corpus(*world, 53));
        small_corpus = new std::string(write_toy_corpus(*world, 2));
    }
    static void TearDownTestSuite() {
        remove_toy_corpus(*world, *small_corpus);
        delete small_corpus;
        remove_toy_corpus(*world, *corpus);
        delete corpus;
        delete world;
    }

    // The result of the same run on the first rank, while the others wait: all of them have its
    // tensors and losses.
    static ToyResult alone(ToyRun run) {
        ToyResult result;
        if (world->rank() == 0) {
            run.capacities = {run.capacities.front() + 3};
            result = train_toy(test::environment(), HostComm::serial(), run);
        }
        const auto communicator = make_communicator(*world, test::environment(), at::kCPU);
        for (at::Tensor* tensor : {&result.parameters, &result.gradients}) {
            const std::int64_t count =
                world->broadcast(tensor->defined() ? tensor->numel() : std::int64_t{0}, 0);
            if (world->rank() != 0)
                *tensor = at::empty({count}, run.dtype);
            communicator->broadcast(*tensor, 0);
        }
        result.losses.resize(2);
        world->broadcast(std::as_writable_bytes(std::span(result.losses)), 0);
        return result;
    }
    static ToyResult together(const ToyRun& run) {
        return train_toy(test::environment(), *world, run);
    }

    // Capacities for as many ranks as there are: 3, 1, 0, 2.
    static std::vector<std::int64_t> uneven() {
        const std::vector<std::int64_t> all{3, 1, 0, 2};
        return {all.begin(), all.begin() + world->size()};
    }

    // On two ranks; further ones have 1 and 0.
    static std::vector<std::int64_t> sixteen_and_four() {
        const std::vector<std::int64_t> all{16, 4, 1, 0};
        return {all.begin(), all.begin() + world->size()};
    }

    static std::vector<std::int64_t> everybody() {
        return std::vector<std::int64_t>(static_cast<std::size_t>(world->size()), 5);
    }

    // A model that takes 15 ms for each sample on the first rank.
    static ToyModel::Spoil slow_on_first_rank() {
        return [is_slow = world->rank() == 0](
                   const MicroBatch& batch, const ForwardContext&, ForwardResult&) {
            if (is_slow)
                std::this_thread::sleep_for(std::chrono::milliseconds(15 * batch.samples));
        };
    }

    static double largest_difference(const at::Tensor& a, const at::Tensor& b) {
        return ((a - b).abs() / a.abs().clamp_min(1)).max().item<double>();
    }

    static HostComm* world;
    static std::string* corpus;
    static std::string* small_corpus;
};

HostComm* EquivalenceTest::world = nullptr;
std::string* EquivalenceTest::corpus = nullptr;
std::string* EquivalenceTest::small_corpus = nullptr;

TEST_F(EquivalenceTest, UnevenSharesGiveWhatOneRankGives) {
    const ToyRun run{.data = *corpus, .capacities = uneven()};

    EXPECT_LE(largest_difference(alone(run).parameters, together(run).parameters), 1e-12);
}

TEST_F(EquivalenceTest, WithDropout) {
    const ToyRun run{.data = *corpus, .capacities = uneven(), .dropout = 0.3};

    EXPECT_LE(largest_difference(alone(run).parameters, together(run).parameters), 1e-12);
}

TEST_F(EquivalenceTest, DropoutChangesTheResult) {
    const ToyRun run{.data = *corpus, .capacities = uneven(), .dropout = 0.3};
    ToyRun without = run;
    without.dropout = 0;

    EXPECT_GT(largest_difference(together(run).parameters, together(without).parameters), 1e-6);
}

TEST_F(EquivalenceTest, EqualBalance) {
    const ToyRun run{.data = *corpus, .capacities = uneven(), .balance = "equal", .dropout = 0.1};

    EXPECT_LE(largest_difference(alone(run).parameters, together(run).parameters), 1e-12);
}

TEST_F(EquivalenceTest, SeveralMicroBatchesAnUpdate) {
    const ToyRun run{.data = *corpus, .capacities = uneven(), .batch_size = 40, .dropout = 0.1};

    EXPECT_LE(largest_difference(alone(run).parameters, together(run).parameters), 1e-12);
}

TEST_F(EquivalenceTest, MoreRanksThanSamples) {
    const ToyRun run{.data = *small_corpus, .capacities = uneven(), .batch_size = 1};

    EXPECT_LE(largest_difference(alone(run).parameters, together(run).parameters), 1e-12);
}

// Shares of a batch of 12 that move from the first rank to the last.
AllocationsByUpdate moving_shares(int ranks) {
    std::vector<std::int64_t> first(static_cast<std::size_t>(ranks)), last = first, all = first;
    first.front() = last.back() = 12;
    for (std::int64_t unit = 0; unit < 12; ++unit)
        ++all[static_cast<std::size_t>(unit % ranks)];
    return {{0, first}, {3, all}, {4, last}, {8, first}};
}

TEST_F(EquivalenceTest, SharesThatMoveGiveWhatOneRankGives) {
    ToyRun run{.data = *corpus, .capacities = everybody(), .dropout = 0.3};
    run.replay = moving_shares(world->size());
    ToyRun fixed = run;
    fixed.replay = {};

    EXPECT_LE(largest_difference(alone(fixed).parameters, together(run).parameters), 1e-12);
    EXPECT_EQ(together(run).report.reallocations, world->size() > 1 ? 3 : 0);  // one has no choice
}

TEST_F(EquivalenceTest, FollowingSpeedsGivesWhatOneRankGives) {
    ToyRun run{.data = *corpus,
               .capacities = uneven(),
               .updates = 60,
               .dropout = 0.1,
               .optimizer = "sgd",
               .follow = true};
    const ToyResult reference = alone(run);
    run.spoil = slow_on_first_rank();

    const ToyResult followed = together(run);

    EXPECT_EQ(followed.report.reallocations > 0, world->size() > 1);
    EXPECT_LE(largest_difference(reference.parameters, followed.parameters), 1e-12);
}

TEST_F(EquivalenceTest, RunningOutOfMemoryChangesNothing) {
    ToyRun run{.data = *corpus, .capacities = everybody(), .dropout = 0.1};
    const ToyResult reference = alone(run);
    int failures = 0;
    run.spoil = [&, is_small = world->rank() == 0](
                    const MicroBatch& batch, const ForwardContext&, ForwardResult&) {
        if (is_small && batch.samples > 2) {
            ++failures;
            throw std::bad_alloc();
        }
    };

    const ToyResult small = together(run);

    EXPECT_EQ(failures > 0, world->rank() == 0);
    EXPECT_LE(largest_difference(reference.parameters, small.parameters), 1e-12);
}

TEST_F(EquivalenceTest, ARunThatFollowedSpeedsIsReplayedBitForBit) {
    ToyRun run{.data = *corpus,
               .capacities = everybody(),
               .updates = 30,
               .dropout = 0.3,
               .dtype = at::kFloat,
               .follow = true,
               .spoil = slow_on_first_rank()};
    const ToyResult followed = together(run);
    run.follow = false;
    run.spoil = {};
    run.replay = followed.report.allocations;

    const ToyResult replayed = together(run);

    EXPECT_EQ(followed.report.reallocations > 0, world->size() > 1);
    EXPECT_EQ(replayed.report.allocations, followed.report.allocations);
    EXPECT_TRUE(at::equal(replayed.parameters, followed.parameters));
}

TEST_F(EquivalenceTest, ARunReplayedIsTheSameBitForBit) {
    ToyRun run{.data = *corpus, .capacities = everybody(), .dropout = 0.3, .dtype = at::kFloat};
    run.replay = moving_shares(world->size());

    EXPECT_TRUE(at::equal(together(run).parameters, together(run).parameters));
}

TEST_F(EquivalenceTest, ClippingSeesTheWholeGradient) {
    const ToyRun run{
        .data = *corpus, .capacities = uneven(), .optimizer = "sgd", .lr = 0.1, .clip_norm = 0.05};

    EXPECT_LE(largest_difference(alone(run).parameters, together(run).parameters), 1e-12);
}

TEST_F(EquivalenceTest, BucketSizeDoesNotMatter) {
    const ToyRun small{.data = *corpus, .capacities = uneven(), .bucket_bytes = 1};
    ToyRun large = small;
    large.bucket_bytes = 1 << 20;

    EXPECT_LE(largest_difference(together(small).parameters, together(large).parameters), 1e-12);
}

TEST_F(EquivalenceTest, SinglePrecisionGradients) {
    const ToyRun run{
        .data = *corpus, .capacities = uneven(), .updates = 1, .dropout = 0.1, .dtype = at::kFloat};

    const at::Tensor reference = alone(run).gradients;
    const at::Tensor gradients = together(run).gradients;

    EXPECT_LE((reference - gradients).abs().max().item<double>(),
              1e-6 * reference.abs().max().item<double>());
}

TEST_F(EquivalenceTest, SinglePrecisionParametersAfterFiveUpdates) {
    const ToyRun run{.data = *corpus,
                     .capacities = uneven(),
                     .updates = 5,
                     .dropout = 0.1,
                     .dtype = at::kFloat,
                     .optimizer = "sgd",
                     .lr = 0.1};

    EXPECT_LE(largest_difference(alone(run).parameters, together(run).parameters), 1e-5);
}

TEST_F(EquivalenceTest, Lamb) {
    const ToyRun run{.data = *corpus,
                     .capacities = sixteen_and_four(),
                     .batch_size = 20,
                     .dropout = 0.1,
                     .optimizer = "lamb"};

    EXPECT_LE(largest_difference(alone(run).parameters, together(run).parameters), 1e-12);
}

TEST_F(EquivalenceTest, LambInSinglePrecisionAfterOneUpdate) {
    const ToyRun run{.data = *corpus,
                     .capacities = sixteen_and_four(),
                     .batch_size = 20,
                     .updates = 1,
                     .dropout = 0.1,
                     .dtype = at::kFloat,
                     .optimizer = "lamb"};

    EXPECT_LE(largest_difference(alone(run).parameters, together(run).parameters), 1e-5);
}

TEST_F(EquivalenceTest, LossesAndValidationAgree) {
    const ToyRun run{.data = *corpus, .capacities = uneven(), .dropout = 0.1, .validate = true};

    const ToyResult reference = alone(run);
    const ToyResult result = together(run);

    for (std::size_t j = 0; j < 2; ++j)
        EXPECT_NEAR(
            result.losses[j], reference.losses[j], 1e-12 * std::max(1.0, reference.losses[j]));
    ASSERT_TRUE(result.report.last_valid);
    if (world->rank() != 0)
        return;
    ASSERT_TRUE(reference.report.last_valid);
    EXPECT_NEAR(result.report.last_valid->loss(), reference.report.last_valid->loss(), 1e-11);
    EXPECT_EQ(result.report.last_valid->metrics[0].value,
              reference.report.last_valid->metrics[0].value);
}

TEST_F(EquivalenceTest, AllRanksHoldTheSameBits) {
    const at::Tensor parameters =
        together({.data = *corpus, .capacities = uneven(), .dropout = 0.1}).parameters;

    const std::string own(static_cast<const char*>(parameters.const_data_ptr()),
                          parameters.nbytes());
    EXPECT_EQ(world->broadcast(own, 0), own);
}

}  // namespace
}  // namespace hetseq::test
