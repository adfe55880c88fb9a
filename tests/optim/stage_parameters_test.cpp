// The parameters of a stage of a model, and norms over all stages.
#include <cmath>
#include <memory>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/gradient_norm.hpp"
#include "hetseq/optim/optimizer.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

constexpr std::int64_t most = FlatParameters::most_in_block;

// "table", which the last stage reads too, has two blocks, "layer" three, "head" one.
struct StageOfTable : TensorRegistry {
    StageOfTable() {
        register_parameter("table", at::zeros({most + 7}));
        register_parameter("layer", at::zeros({2 * most + 100}));
        register_parameter("head", at::zeros({10}));
        register_parameter("frozen", at::zeros({5}), false);
    }
    explicit StageOfTable(const std::set<std::string>& names) : StageOfTable() { keep_only(names); }
};

bool all_decay(const std::string&) {
    return true;
}

// A stage's gradients, which depend on names alone.
struct Stage {
    explicit Stage(StageOfTable stage) : model{std::move(stage)} {
        for (const auto& parameter : flat.parameters())
            parameter.tensor.grad().copy_(at::sin(at::arange(parameter.numel, at::kDouble) * 0.37) *
                                          static_cast<double>(parameter.name.size()));
    }

    at::Tensor squares() const {
        const at::Tensor squares =
            at::full({static_cast<std::int64_t>(flat.all_blocks())}, 7, at::kDouble);
        GradientNorm{flat}.held_squares(flat.gradients(), squares);
        return squares;
    }

    StageOfTable model;
    FlatParameters flat{model, all_decay};
};

TEST(StageParametersTest, BlocksHaveTheirNumbersInTheWholeModel) {
    const StageOfTable whole, layer{{"layer"}}, ends{{"table", "head"}};

    const FlatParameters of_whole{whole, all_decay};
    const FlatParameters of_layer{layer, all_decay}, of_ends{ends, all_decay};

    EXPECT_THAT(of_whole.block_numbers(), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(of_layer.block_numbers(), ElementsAre(1, 2, 3));
    EXPECT_THAT(of_ends.block_numbers(), ElementsAre(0, 4, 5));
    for (const FlatParameters* flat : {&of_whole, &of_layer, &of_ends}) {
        EXPECT_EQ(flat->all_blocks(), 6U);
        EXPECT_EQ(flat->blocks().size(), flat->block_numbers().size());
    }
}

TEST(StageParametersTest, OnlyWhatIsHeldIsLaidOut) {
    const StageOfTable stage{{"head"}};

    const FlatParameters flat{stage, all_decay};

    ASSERT_EQ(flat.parameters().size(), 1U);
    EXPECT_EQ(flat.parameters()[0].name, "head");
    EXPECT_EQ(flat.values().numel(), 16);  // 10, padded
    EXPECT_FALSE(stage.find_parameter("layer").grad().defined());
    EXPECT_EQ(stage.find_parameter("layer").storage().nbytes(), sizeof(float));
}

TEST(StageParametersTest, AStageMayHoldNothingThatIsTrained) {
    const StageOfTable stage{{"frozen"}};
    FlatParameters flat{stage, all_decay};

    EXPECT_TRUE(flat.parameters().empty());
    EXPECT_TRUE(flat.held().empty());
    EXPECT_EQ(flat.values().numel(), 0);
    EXPECT_EQ(flat.values().scalar_type(), at::kFloat);
    EXPECT_EQ(flat.all_blocks(), 6U);
    EXPECT_EQ(GradientNorm{flat}.of(flat.gradients()).item<double>(), 0);
    for (const auto make : {make_adam, make_adamw, make_sgd, make_adadelta, make_lamb}) {
        const std::unique_ptr<Optimizer> optimizer = make(flat, {.momentum = 0.9});
        optimizer->step(flat, 0.1);
        EXPECT_EQ(optimizer->state().at("step").item<std::int64_t>(), 1);
    }
}

TEST(StageParametersTest, AModelThatTrainsNowhereIsRefusedByItsStages) {
    StageOfTable stage{{"head"}};
    for (at::Tensor& parameter : stage.parameters())
        parameter.set_requires_grad(false);

    EXPECT_THROW(FlatParameters(stage, all_decay), BadConfig);
}

TEST(StageParametersTest, ANormOverStagesHasTheBitsOfTheWholeModels) {
    const Stage whole{StageOfTable{}};
    const double expected = GradientNorm{whole.flat}.of(whole.flat.gradients()).item<double>();
    Stage first{StageOfTable{{"table"}}}, middle{StageOfTable{{"layer"}}},
        last{StageOfTable{{"table", "head"}}}, nothing{StageOfTable{{"frozen"}}};

    last.flat.count_elsewhere({"table", "unknown"});

    const at::Tensor squares =
        first.squares() + middle.squares() + last.squares() + nothing.squares();
    EXPECT_TRUE(squares.equal(whole.squares()));
    for (const Stage* stage : {&first, &middle, &last, &nothing})
        EXPECT_EQ(GradientNorm{stage->flat}.from_squares(squares).item<double>(), expected);
}

TEST(StageParametersTest, ATiedParameterCountsWhereItIsSaid) {
    Stage last{StageOfTable{{"table", "head"}}};

    last.flat.count_elsewhere({"table"});

    EXPECT_FALSE(last.flat.counts(last.flat.parameters()[1]));
    EXPECT_TRUE(last.flat.counts(last.flat.parameters()[0]));
    EXPECT_GT(last.squares()[0].item<double>(), 0);
    EXPECT_EQ(last.squares().narrow(0, 1, 5).abs().sum().item<double>(), 0);
}

// The state of a stage may be cut over the ranks that have this stage.
TEST(StageParametersTest, RanksOfAStageWriteTheBlocksOfTheirState) {
    const Stage whole{StageOfTable{}};
    at::Tensor squares = Stage{StageOfTable{{"layer"}}}.squares();
    for (const int rank : {0, 1}) {
        Stage replica{StageOfTable{{"table", "head"}}};
        replica.flat.shard_state({{0, 0, 16 + most}, {1, 16 + most, 16}}, rank);
        squares = squares + replica.squares();
    }

    EXPECT_TRUE(squares.equal(whole.squares()));
}

}  // namespace
}  // namespace hetseq
