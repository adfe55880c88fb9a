#include "balance/pipeline/chain_costs.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

ChainProblem one_class(std::vector<double> forward_ms) {
    const std::size_t units = forward_ms.size();
    ChainProblem problem;
    problem.devices = {{.count = units,
                        .forward_ms = forward_ms,
                        .backward_ms = std::vector<double>(units, 0),
                        .memory_mb = 100}};
    problem.links = {{{}}};
    problem.activations_mb.assign(units, 0);
    problem.gradients_mb.assign(units, 0);
    problem.activations_mb_kept.assign(units, 0);
    problem.workspace_mb.assign(units, 0);
    problem.state_mb = [](std::size_t, std::size_t, std::size_t) { return 0.0; };
    return problem;
}

// In binary, 0.1 + 0.1 + 0.1 depends on what was added before.
TEST(ChainCostsTest, StagesOfLikeUnitsTakeEquallyLongWhereverTheyAre) {
    const ChainProblem problem = one_class(std::vector<double>(40, 0.1));

    const ChainCosts costs{problem};

    const double first_ms = costs.stage_ms({0, 0, 3});
    EXPECT_NEAR(first_ms, 0.3, 3 * std::ldexp(1, -21));
    for (std::size_t begin = 1; begin + 3 <= 40; ++begin)
        EXPECT_EQ(costs.stage_ms({0, begin, begin + 3}), first_ms) << "from unit " << begin;
}

TEST(ChainCostsTest, MemoryThatIsJustEnoughIsEnough) {
    ChainProblem problem = one_class({1, 1, 1, 1});
    problem.activations_mb_kept = {10, 10, 10, 20};
    problem.state_mb = [](std::size_t, std::size_t, std::size_t) { return 40.0; };

    const ChainCosts costs{problem};

    EXPECT_EQ(costs.most_in_flight({0, 0, 2}), 3);  // 40 + 3 * 20
    EXPECT_EQ(costs.most_in_flight({0, 1, 4}), 1);  // 40 + 40
    EXPECT_EQ(costs.most_in_flight({0, 0, 1}), 4);  // there are no more stages
    problem.devices[0].memory_mb = 39;
    EXPECT_EQ(ChainCosts{problem}.most_in_flight({0, 0, 1}), 0);
}

// Its fastest link tells how fast a card is.
TEST(ChainCostsTest, AMessageOverASlowLinkTakesAFastCardForPartOfItsTime) {
    ChainProblem problem = one_class({1, 1});
    problem.devices.assign(3, problem.devices.front());
    problem.devices[0].count = 1;
    const auto link = [](double ms_per_mb) { return ChainLink{.ms_per_mb = ms_per_mb}; };
    problem.links = {
        {link(0), link(8), link(2)}, {link(8), link(8), link(8)}, {link(2), link(8), {}}};
    problem.devices[2].host = 1;
    problem.activations_mb = problem.gradients_mb = {1, 1};

    const ChainCosts costs{problem};

    EXPECT_EQ(costs.card_part(0, 1), 0.25);
    EXPECT_EQ(costs.card_part(0, 2), 1);
    EXPECT_EQ(costs.card_part(1, 0), 1);
    EXPECT_EQ(costs.cards(0, 0, 1).front_out, 2);
    EXPECT_EQ(costs.cards(0, 0, 1).front_in, 2);
    EXPECT_EQ(costs.cards(0, 0, 1).behind_out, 8);
    EXPECT_EQ(costs.cards(0, 0, 1).behind_in, 8);
    EXPECT_EQ(costs.cards(0, 2, 2).front_out, 0);
}

}  // namespace
}  // namespace hetseq
