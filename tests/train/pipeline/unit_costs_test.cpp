#include "hetseq/train/pipeline/unit_costs.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "model/chain_models.hpp"
#include "train/pipeline/staged_replica.hpp"

namespace hetseq::test {
namespace {

class MeasureUnitsTest : public testing::Test {
protected:
    // Those of BERT: embeddings, two layers, the last one, heads.
    std::vector<UnitCost> measured(std::int64_t count, std::int64_t recomputed = 0) {
        return measure_units(*model_, texts(0, count), pauses_, [&] {
            ++prepared_;
            initialise_parameters(*model_, 3);
            model_->recompute(recomputed > 0 ? model_->recomputable_layers() : 0);
        });
    }

    std::shared_ptr<Model> model_ = untied_bert();
    int prepared_ = 0;
    Pauses pauses_ = Pauses::unlikely;
};

TEST_F(MeasureUnitsTest, EachKindIsMeasuredOnce) {
    std::set<std::string> kinds;
    for (const ChainUnit& unit : model_->chain())
        kinds.insert(unit.kind);

    const std::vector<UnitCost> costs = measured(4);

    EXPECT_EQ(costs.size(), model_->chain().size());
    EXPECT_LT(kinds.size(), costs.size());
    EXPECT_EQ(prepared_, static_cast<int>(kinds.size()));
    EXPECT_EQ(costs[1].forward_ms, costs[2].forward_ms);  // layers
    EXPECT_TRUE(model_->held_units().empty());
}

TEST_F(MeasureUnitsTest, CostsArePlausible) {
    const std::vector<UnitCost> costs = measured(4);

    const double hidden = 4 * 16 * static_cast<double>(chain_bert_config().hidden_size) * 4;
    for (std::size_t unit = 0; unit < costs.size(); ++unit) {
        SCOPED_TRACE(unit);
        EXPECT_GT(costs[unit].forward_ms, 0);
        EXPECT_GT(costs[unit].backward_ms, 0);
        EXPECT_GT(costs[unit].kept_mb, 0);
        EXPECT_GT(costs[unit].workspace_mb, 0);
        if (unit + 1 < costs.size()) {
            EXPECT_GT(costs[unit].output_mb, 0);
            EXPECT_GE(costs[unit].kept_mb, costs[unit].output_mb);
        }
    }
    EXPECT_NEAR(costs[1].output_mb, hidden / (1 << 20), 1e-9);
    EXPECT_EQ(costs.back().output_mb, 0);
}

// Nothing stops this process for long, so that both ways to measure give times of one size.
TEST_F(MeasureUnitsTest, APausedRankMeasuresTheSameInProcessorTime) {
    const double plain = measured(8)[1].backward_ms;

    pauses_ = Pauses::likely;
    const std::vector<UnitCost> costs = measured(8);

    for (const UnitCost& cost : costs) {
        EXPECT_GT(cost.forward_ms, 0);
        EXPECT_GT(cost.backward_ms, 0);
    }
    EXPECT_GT(costs[1].backward_ms, plain / 20);
    EXPECT_LT(costs[1].backward_ms, plain * 20);
}

TEST_F(MeasureUnitsTest, MoreSamplesKeepMoreAndARecomputedLayerLess) {
    const double of_two = measured(2)[1].kept_mb, of_eight = measured(8)[1].kept_mb;

    EXPECT_NEAR(of_eight / of_two, 4, 0.5);
    EXPECT_LT(measured(8, 1)[1].kept_mb, of_eight / 2);
}

// Nothing goes back through what is frozen up to a unit, and a trained layer behind it costs more.
TEST_F(MeasureUnitsTest, FrozenLayersAreMeasuredAsSuch) {
    const std::vector<ChainUnit> chain = model_->chain();
    for (const std::size_t unit : {0, 1})
        for (const std::string& name : chain[unit].parameters)
            model_->find_parameter(name).set_requires_grad(false);

    const std::vector<UnitCost> costs = measured(8);

    EXPECT_EQ(prepared_, 5);  // no two of them cost the same
    EXPECT_LT(costs[1].backward_ms, costs[2].backward_ms);
    EXPECT_LT(costs[1].kept_mb, costs[2].kept_mb / 2);
    EXPECT_GT(costs[3].backward_ms, 0);
}

// Few words of the vocabulary are in a sample; the decoder's gradient has all of them.
TEST_F(MeasureUnitsTest, OfATiedParameterAUnitFillsWhatItsSamplesHave) {
    for (const UnitCost& cost : measured(1))
        EXPECT_EQ(cost.filled, 1);  // nothing is tied
    model_ = tied_bert();

    const std::vector<UnitCost> of_one = measured(1), of_eight = measured(8);

    EXPECT_GT(of_one.front().filled, 0);
    EXPECT_LT(of_one.front().filled, of_eight.front().filled);
    EXPECT_LE(of_eight.front().filled, 1);
    for (std::size_t unit = 1; unit < of_one.size(); ++unit)
        EXPECT_EQ(of_one[unit].filled, 1) << unit;
}

TEST(CostBetweenTest, LiesOnTheLineThroughBoth) {
    const UnitCost small{.forward_ms = 2, .backward_ms = 4, .kept_mb = 10, .output_mb = 1};
    const UnitCost large{.forward_ms = 5, .backward_ms = 4, .kept_mb = 40, .output_mb = 4};

    const UnitCost middle = cost_between(small, 1, large, 4, 2);
    const UnitCost beyond = cost_between(small, 1, large, 4, 8);

    EXPECT_NEAR(middle.forward_ms, 3, 1e-12);
    EXPECT_NEAR(middle.backward_ms, 4, 1e-12);
    EXPECT_NEAR(middle.kept_mb, 20, 1e-12);
    EXPECT_NEAR(beyond.output_mb, 8, 1e-12);
    EXPECT_NEAR(cost_between(small, 1, large, 4, 4).kept_mb, 40, 1e-12);
}

// Measured times jitter: the line may fall to nothing for small micro-batches.
TEST(CostBetweenTest, IsNeverNothing) {
    const UnitCost small{.forward_ms = 1}, large{.forward_ms = 9};

    EXPECT_GT(cost_between(small, 4, large, 16, 1).forward_ms, 0);
    EXPECT_EQ(cost_between(small, 4, large, 4, 4).forward_ms, 9);
}

TEST(CostBetweenTest, WhatIsFilledGrowsByAPowerUntilItIsAll) {
    const UnitCost small{.filled = 0.1}, large{.filled = 0.2};  // twice as much of four times
    const auto filled = [&](double size) { return cost_between(small, 1, large, 4, size).filled; };

    EXPECT_NEAR(filled(1), 0.1, 1e-12);
    EXPECT_NEAR(filled(16), 0.4, 1e-12);
    EXPECT_EQ(filled(1000), 1);
    EXPECT_NEAR(cost_between(large, 4, large, 4, 8).filled, 0.4, 1e-12);  // at most so much
    EXPECT_EQ(cost_between({}, 1, {}, 4, 8).filled, 1);
    EXPECT_EQ(cost_between({.filled = 0}, 1, {.filled = 0}, 4, 8).filled, 0);
}

}  // namespace
}  // namespace hetseq::test
