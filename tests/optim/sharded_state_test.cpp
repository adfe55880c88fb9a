// Optimizers whose state is cut over ranks, each of which is a replica in this process.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/gradient_buckets.hpp"
#include "hetseq/optim/gradient_norm.hpp"
#include "hetseq/optim/optimizer.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

// In layout order: last | narrow | wide; wide has three blocks and a bit, narrow a bit of one.
struct Parameters : TensorRegistry {
    explicit Parameters(at::ScalarType type) {
        const auto values = [&](std::int64_t n, double step) {
            return at::sin(at::arange(n, at::kDouble) * step).to(type);
        };
        register_parameter("wide", values(3 * FlatParameters::most_in_block + 1001, 0.7));
        register_parameter("narrow", values(100, 0.3));
        register_parameter("last", values(FlatParameters::most_in_block + 5, 1.1));
    }
};

bool all_but_narrow_decay(const std::string& name) {
    return name != "narrow";
}

double factor(const std::string& name) {
    return name == "last" ? 0.5 : 1;
}

struct Replica {
    explicit Replica(at::ScalarType type) : model{type} {}

    // A gradient of this step, of unlike sizes.
    void set_gradients(int step) {
        for (const auto& parameter : flat.parameters())
            parameter.tensor.grad().copy_(
                at::cos(at::arange(parameter.numel, at::kDouble) * (step + 0.37)) * (step + 1));
    }

    Parameters model;
    FlatParameters flat{model, all_but_narrow_decay, factor};
};

// Cut by blocks: of `last` two, `narrow` one, `wide` four.
std::vector<OwnedRange> ranges_by_block(const FlatParameters& flat,
                                        const std::vector<int>& owners) {
    std::vector<OwnedRange> ranges;
    for (std::size_t b = 0; b < owners.size(); ++b) {
        const std::int64_t begin = flat.blocks()[b].offset;
        const std::int64_t end =
            b + 1 < owners.size() ? flat.blocks()[b + 1].offset : flat.values().numel();
        ranges.push_back({owners[b], begin, end - begin});
    }
    return ranges;
}

const std::vector<std::vector<int>> cuts = {
    {0, 1, 0, 1, 0, 1, 0}, {0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 0, 0, 0}, {0, 0, 1, 1, 1, 1, 1}};

TEST(ShardedStateTest, BlocksEndWithParametersAndNorms) {
    Replica replica{at::kFloat};
    constexpr std::int64_t most = FlatParameters::most_in_block;
    std::vector<std::int64_t> lengths;

    for (const FlatParameters::Block& block : replica.flat.blocks())
        lengths.push_back(block.numel);

    EXPECT_THAT(lengths, ElementsAre(most, 5, 100, most, most, most, 1001));
}

TEST(ShardedStateTest, ARankHoldsWhatItOwnsOneAfterTheOther) {
    Replica replica{at::kFloat};

    replica.flat.shard_state(ranges_by_block(replica.flat, {0, 1, 0, 1, 0, 1, 0}), 1);

    constexpr std::int64_t most = FlatParameters::most_in_block;
    ASSERT_EQ(replica.flat.held().size(), 3u);
    EXPECT_EQ(replica.flat.held()[0].offset, most);
    EXPECT_EQ(replica.flat.held()[1].state_offset, 16);  // 5, padded
    EXPECT_EQ(replica.flat.held()[2].state_offset, 16 + most);
    EXPECT_EQ(replica.flat.held_numel(), 16 + 2 * most);
    EXPECT_EQ(replica.flat.state_zeros().numel(), 16 + 2 * most);
}

TEST(ShardedStateTest, TheNormHasTheSameBitsHoweverItsSquaresAreCut) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble})
        for (const auto& owners : cuts) {
            Replica whole{type};
            whole.set_gradients(1);
            GradientNorm norm{whole.flat};
            const double expected = norm.of(whole.flat.gradients()).item<double>();
            const auto count = std::ssize(whole.flat.blocks());
            at::Tensor squares = at::zeros({count}, at::kDouble);
            for (int rank = 0; rank < 2; ++rank) {
                Replica replica{type};
                replica.flat.shard_state(ranges_by_block(replica.flat, owners), rank);
                replica.set_gradients(1);
                const at::Tensor own = at::full({count}, 7, at::kDouble);
                GradientNorm{replica.flat}.held_squares(replica.flat.gradients(), own);
                squares += own;
            }

            EXPECT_EQ(norm.from_squares(squares).item<double>(), expected);
            EXPECT_NEAR(expected / whole.flat.gradients().norm().item<double>(), 1, 1e-6);
        }
}

class ShardedOptimizerTest : public testing::TestWithParam<std::unique_ptr<Optimizer> (*)(
                                 FlatParameters&, const OptimizerOptions&)> {
protected:
    std::unique_ptr<Optimizer> make(FlatParameters& flat) const {
        return GetParam()(flat, {.weight_decay = 0.1, .momentum = 0.9});
    }
};

INSTANTIATE_TEST_SUITE_P(Optimizers,
                         ShardedOptimizerTest,
                         testing::Values(make_adam, make_adamw, make_sgd, make_adadelta));

TEST_P(ShardedOptimizerTest, StepsWhatItHoldsToTheBitAndNothingElse) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble})
        for (const auto& owners : cuts) {
            Replica whole{type};
            const auto whole_optimizer = make(whole.flat);
            for (int rank = 0; rank < 2; ++rank) {
                Replica one{type}, start{type};
                const auto ranges = ranges_by_block(one.flat, owners);
                one.flat.shard_state(ranges, rank);
                const auto optimizer = make(one.flat);
                EXPECT_TRUE(optimizer->follows_shards());
                for (int step = 0; step < 3; ++step) {
                    one.set_gradients(step);
                    optimizer->step(one.flat, 1e-2);
                    if (rank == 0) {
                        whole.set_gradients(step);
                        whole_optimizer->step(whole.flat, 1e-2);
                    }
                }
                for (const OwnedRange& range : ranges) {
                    const at::Tensor& expected =
                        range.owner == rank ? whole.flat.values() : start.flat.values();
                    EXPECT_TRUE(at::equal(one.flat.values().narrow(0, range.begin, range.length),
                                          expected.narrow(0, range.begin, range.length)))
                        << "rank " << rank << " from " << range.begin;
                }
                for (const auto& [name, tensor] : optimizer->state())
                    EXPECT_TRUE(tensor.dim() == 0 || tensor.numel() == one.flat.held_numel())
                        << name;
            }
        }
}

TEST(GradientBucketsTest, EndAtParametersAndKnowTheirBlocksAndRanges) {
    Replica replica{at::kFloat};
    constexpr std::int64_t most = FlatParameters::most_in_block;

    const auto buckets = cut_buckets(replica.flat, 100);  // bytes: narrow is 400

    ASSERT_EQ(buckets.size(), 3u);
    EXPECT_EQ(buckets[1].offset, most + 16);
    EXPECT_EQ(buckets[1].numel, 112);
    EXPECT_THAT(
        blocks_of(replica.flat, buckets),
        ElementsAre(ElementsAre(most, 16), ElementsAre(112), ElementsAre(most, most, most, 1008)));
    const std::vector<OwnedRange> all = {{1, 0, most + 50},
                                         {0, most + 50, replica.flat.values().numel() - most - 50}};
    EXPECT_THAT(ranges_in(buckets[1], all),
                ElementsAre(OwnedRange{1, 0, 34}, OwnedRange{0, 34, 78}));
    EXPECT_THAT(ranges_in(buckets[0], all), ElementsAre(OwnedRange{1, 0, most + 16}));
}

}  // namespace
}  // namespace hetseq
