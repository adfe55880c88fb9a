#include "balance/pipeline/best_cuts.hpp"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "balance/pipeline/chain_reference.hpp"

namespace hetseq {
namespace {

constexpr std::size_t most = 8;

TEST(BestCutsTest, AreThoseOfBruteForce) {
    RandomChains chains{11};
    int fitting = 0, full = 0;

    for (int instance = 0; instance < 5000; ++instance) {
        const ChainProblem problem = chains.problem(5, 8);
        const AllCuts all{problem};

        const std::vector<ScoredCut> cuts = best_cuts(ChainCosts{problem}, most);

        ASSERT_EQ(cuts.size(), std::min(most, all.fitting.size())) << "instance " << instance;
        for (std::size_t i = 0; i < cuts.size(); ++i) {
            ASSERT_EQ(cuts[i].score_ms, all.fitting[i].score_ms) << "instance " << instance;
            ASSERT_EQ(cuts[i].stages, all.fitting[i].stages) << "instance " << instance;
        }
        fitting += cuts.empty() ? 0 : 1;
        full += cuts.size() == most ? 1 : 0;
    }

    EXPECT_GT(fitting, 3000);
    EXPECT_LT(fitting, 4800);
    EXPECT_GT(full, 1500);
}

double least_score(const ChainProblem& problem) {
    const auto cuts = best_cuts(ChainCosts{problem}, 1);
    return cuts.empty() ? std::numeric_limits<double>::infinity() : cuts.front().score_ms;
}

TEST(BestCutsTest, MoreMemoryFasterDevicesAndMoreOfThemAreNeverWorse) {
    RandomChains chains{12};
    int better = 0;

    for (int instance = 0; instance < 300; ++instance) {
        ChainProblem problem = chains.problem(8, 12);
        const double before = least_score(problem);
        ChainDevices& devices = problem.devices.front();
        const int kind = chains.draw(0, 2);
        if (kind == 0)
            devices.memory_mb += 20;
        else if (kind == 1)
            devices.backward_ms.front() /= 2;
        else
            ++devices.count;

        const double after = least_score(problem);

        EXPECT_LE(after, before) << "instance " << instance;
        better += after < before ? 1 : 0;
    }

    EXPECT_GT(better, 30);
}

}  // namespace
}  // namespace hetseq
