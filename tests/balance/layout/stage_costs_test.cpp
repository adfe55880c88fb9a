#include "balance/layout/stage_costs.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "balance/layout/compute_times.hpp"
#include "balance/layout/cut_times.hpp"
#include "balance/layout/layout_reference.hpp"
#include "balance/layout/worker_chain.hpp"
#include "balance/layout/worker_kind.hpp"

namespace hetseq {
namespace {

// A cut of a random problem, whose kind has the devices of its stages alone: how fast a card is
// follows from the links of devices that work.
struct RandomCut {
    LayoutProblem problem;
    std::size_t size = 0;
    WorkerKind kind;
    std::vector<ChainStage> stages;  // classes as in the layout
};

RandomCut random_cut(RandomLayouts& layouts) {
    RandomCut cut{.problem = layouts.problem(6, 7, 20), .kind = {}, .stages = {}};
    // Small micro-batches may be the more efficient ones.
    for (ChainDevices& devices : cut.problem.sizes.back().chain.devices)
        for (std::vector<double>* const all : {&devices.forward_ms, &devices.backward_ms})
            for (double& ms : *all)
                ms *= 0.75;
    cut.size =
        static_cast<std::size_t>(layouts.draw(0, static_cast<int>(cut.problem.sizes.size()) - 1));
    const std::size_t classes = cut.problem.sizes.front().chain.devices.size();
    for (LayoutProblem::Size& size : cut.problem.sizes)
        for (std::size_t c = 0; c < classes; ++c)
            if (c != 1)
                size.chain.devices[c].host = c / 3;
    cut.kind.devices.assign(classes, 0);
    for (std::size_t begin = 0; begin < cut.problem.units();) {
        const std::size_t end = static_cast<std::size_t>(
            layouts.draw(static_cast<int>(begin) + 1, static_cast<int>(cut.problem.units())));
        const auto c = static_cast<std::size_t>(layouts.draw(0, static_cast<int>(classes) - 1));
        ++cut.kind.devices[c];
        cut.stages.push_back({c, begin, end});
        begin = end;
    }
    return cut;
}

TEST(StageCostsTest, AreThoseOfTheCutInItsChain) {
    RandomLayouts layouts{71};
    int pipelines = 0;
    for (int instance = 0; instance < 2000; ++instance) {
        const RandomCut cut = random_cut(layouts);
        const StateTable state{cut.problem, 1};
        WorkerChain chain = worker_chain(cut.problem, state, cut.size, cut.kind);
        chain.problem.tied.clear();
        chain.problem.micro_batches = static_cast<std::size_t>(layouts.draw(1, 9));
        std::vector<ChainStage> stages = cut.stages;
        for (ChainStage& stage : stages)
            for (std::size_t c = 0; c < chain.classes.size(); ++c)
                if (chain.classes[c] == stage.device_class) {
                    stage.device_class = c;
                    break;
                }
        const PipelineCut expected =
            with_more_in_flight(chain.problem, evaluate_cut(chain.problem, stages));

        const PipelineCut found =
            fastest_in_flight(stage_costs(cut.problem, state, cut.size, cut.kind, cut.stages),
                              chain.problem.micro_batches);

        EXPECT_NEAR(found.predicted_ms, expected.predicted_ms, 1e-4) << "instance " << instance;
        EXPECT_NEAR(found.period_ms, expected.period_ms, 1e-5) << "instance " << instance;
        EXPECT_NEAR(found.score_ms, expected.score_ms, 1e-4) << "instance " << instance;
        EXPECT_NEAR(found.bubble, expected.bubble, 1e-6) << "instance " << instance;
        ASSERT_EQ(found.extra_in_flight, expected.extra_in_flight) << "instance " << instance;
        ASSERT_EQ(found.memory.size(), expected.memory.size());
        for (std::size_t s = 0; s < found.memory.size(); ++s) {
            EXPECT_NEAR(found.memory[s].needed_mb, expected.memory[s].needed_mb, 1e-9);
            EXPECT_EQ(found.memory[s].usable_mb, expected.memory[s].usable_mb);
        }
        pipelines += stages.size() > 1 ? 1 : 0;
    }
    EXPECT_GT(pipelines, 1000);
}

// The bound that spares a search.
TEST(StageCostsTest, NoWorkerIsFasterThanItsSlowestStage) {
    RandomLayouts layouts{72};
    for (int instance = 0; instance < 500; ++instance) {
        const RandomCut cut = random_cut(layouts);
        const StateTable state{cut.problem, 1};
        const StepCost cost = cut_times(cut.problem, state, cut.size, cut.kind, cut.stages);
        const double speed = most_speed(cut.problem, cut.size, cut.stages);
        for (std::int64_t units = 1; units <= cut.problem.batch; ++units)
            EXPECT_GE(cost.time_ms(units) * speed, static_cast<double>(units) - 1e-3)
                << "instance " << instance;
    }
}

}  // namespace
}  // namespace hetseq
