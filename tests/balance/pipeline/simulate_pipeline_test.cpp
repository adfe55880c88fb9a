#include "hetseq/balance/pipeline/simulate_pipeline.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::DoubleEq;

using PipelineStages = std::vector<PipelineStage>;
using PipelineLinks = std::vector<PipelineLink>;

PipelineStage even_stage(std::size_t micro_batches,
                         double forward_ms,
                         double backward_ms,
                         std::size_t in_flight) {
    return {std::vector<double>(micro_batches, forward_ms),
            std::vector<double>(micro_batches, backward_ms),
            in_flight};
}

TEST(SimulatePipelineTest, EqualStagesTakeOneStepForEachMicroBatchAndEachFurtherStage) {
    for (const std::size_t stages : {1, 2, 3, 5})
        for (const std::size_t micro_batches : {1, 2, 4, 9}) {
            PipelineStages pipeline;
            for (std::size_t s = 0; s < stages; ++s)
                pipeline.push_back(even_stage(micro_batches, 1, 2, most_in_flight(stages, s)));

            const auto result = simulate_pipeline(pipeline, PipelineLinks(stages - 1));

            const auto steps = static_cast<double>(micro_batches + stages - 1);
            EXPECT_EQ(result.makespan_ms, 3 * steps);
            EXPECT_DOUBLE_EQ(result.bubble, static_cast<double>(stages - 1) / steps);
            for (std::size_t s = 0; s < stages; ++s)
                EXPECT_EQ(result.stages[s].peak_in_flight, std::min(stages - s, micro_batches));
        }
}

// Stage 0: F0 0-1, F1 1-2, B0 8-10, B1 15-17.
// Stage 1: F0 1-4, B0 4-8, F1 8-11, B1 11-15.
TEST(SimulatePipelineTest, TwoUnlikeStages) {
    const PipelineStages pipeline{even_stage(2, 1, 2, 2), even_stage(2, 3, 4, 1)};

    const auto result = simulate_pipeline(pipeline, PipelineLinks(1));

    EXPECT_EQ(result.makespan_ms, 17);
    EXPECT_EQ(result.stages[0].busy_ms, 6);
    EXPECT_EQ(result.stages[0].idle_ms, 11);
    EXPECT_EQ(result.stages[1].busy_ms, 14);
    EXPECT_EQ(result.stages[1].idle_ms, 3);
    EXPECT_THAT(result.bubble, DoubleEq(1 - 20.0 / 34));
}

// Stage 0: F0 0-1, F1 1-2, B0 8-10, B1 12-14.
// Stage 1: F0 1-3, F1 3-5, B0 7-8, B1 11-12.
// Stage 2: F0 3-4, B0 4-7, F1 7-8, B1 8-11.
TEST(SimulatePipelineTest, ThreeUnlikeStages) {
    const PipelineStages pipeline{
        even_stage(2, 1, 2, 3), even_stage(2, 2, 1, 2), even_stage(2, 1, 3, 1)};

    EXPECT_EQ(simulate_pipeline(pipeline, PipelineLinks(2)).makespan_ms, 14);
}

// Stage 0: F0 0-1, F1 1-2, B0 9-10, B1 14-15. Activations: 1-6, 6-11.
// Stage 1: F0 6-7, B0 7-8, F1 11-12, B1 12-13. Gradients: 8-9, 13-14.
TEST(SimulatePipelineTest, ASlowLinkCarriesOneMessageAfterAnother) {
    const PipelineStages pipeline{even_stage(2, 1, 1, 2), even_stage(2, 1, 1, 1)};

    const auto result = simulate_pipeline(pipeline, PipelineLinks{{5, 1}});

    EXPECT_EQ(result.makespan_ms, 15);
    EXPECT_EQ(result.links[0].forward_busy_ms, 10);
    EXPECT_EQ(result.links[0].backward_busy_ms, 2);
}

// Stage 0: F0 0-1, F1 1-3, B0 6-8, F2 8-9, B1 9-13, B2 16-18.
// Stage 1: F0 1-3, B0 3-6, F1 6-7, B1 7-9, F2 9-12, B2 12-16.
TEST(SimulatePipelineTest, UnequalMicroBatches) {
    const PipelineStages pipeline{{{1, 2, 1}, {2, 4, 2}, 2}, {{2, 1, 3}, {3, 2, 4}, 1}};

    const auto result = simulate_pipeline(pipeline, PipelineLinks(1));

    EXPECT_EQ(result.makespan_ms, 18);
    EXPECT_EQ(result.stages[0].busy_ms, 12);
    EXPECT_EQ(result.stages[1].busy_ms, 15);
}

// Stage 0: F0 0-1, B0 3-4, F1 4-5, B1 7-8. Stage 1: F0 1-2, B0 2-3, F1 5-6, B1 6-7.
TEST(SimulatePipelineTest, OneInFlightTakesTurns) {
    const PipelineStages pipeline{even_stage(2, 1, 1, 1), even_stage(2, 1, 1, 1)};

    const auto result = simulate_pipeline(pipeline, PipelineLinks(1));

    EXPECT_EQ(result.makespan_ms, 8);
    EXPECT_EQ(result.stages[0].peak_in_flight, 1);
}

// With 2 in flight, stage 0: F0 0-1, F1 1-2, B0 7-8, F2 8-9, B1 9-10, F3 10-11, B2 15-16, B3 17-18.
// With 3, stage 0: F0 0-1, F1 1-2, F2 2-3, B0 7-8, F3 8-9, B1 9-10, B2 11-12, B3 15-16.
TEST(SimulatePipelineTest, MoreInFlightHidesASlowLink) {
    const PipelineLinks link{{2, 2}};
    const auto makespan = [&](std::size_t extra) {
        const PipelineStages pipeline{even_stage(4, 1, 1, most_in_flight(2, 0, extra)),
                                      even_stage(4, 1, 1, most_in_flight(2, 1, extra))};
        return simulate_pipeline(pipeline, link).makespan_ms;
    };

    EXPECT_EQ(makespan(0), 18);
    EXPECT_EQ(makespan(1), 16);
}

// Stage 0: F0 0-1, F1 1-2, B0 2, F2 2-3, B1 and B2 3. Stage 1: F0 1-3, B0 3-5 and so on.
TEST(SimulatePipelineTest, WithoutGradientsTheStageInFrontGoesOn) {
    const PipelineStages pipeline{even_stage(3, 1, 0, 2), even_stage(3, 2, 2, 1)};
    const PipelineLinks link{{.forward_ms = 0, .backward_ms = 50, .sends_gradients = false}};

    const auto result = simulate_pipeline(pipeline, link);

    EXPECT_EQ(result.makespan_ms, 13);
    EXPECT_EQ(result.links[0].backward_busy_ms, 0);
    EXPECT_EQ(result.stages[0].peak_in_flight, 2);
}

TEST(SimulatePipelineTest, NoMicroBatchesTakeNoTime) {
    const auto result = simulate_pipeline(PipelineStages{{{}, {}, 1}}, {});

    EXPECT_EQ(result.makespan_ms, 0);
    EXPECT_EQ(result.bubble, 0);
}

TEST(SimulatePipelineTest, StagesThatWaitForEachOtherAreAMistake) {
    const PipelineStages pipeline{even_stage(2, 1, 1, 1), even_stage(2, 1, 1, 2)};

    EXPECT_THROW(simulate_pipeline(pipeline, PipelineLinks(1)), InternalError);
}

// The same pipeline, millisecond by millisecond: each device and each direction of a link is free
// or has work until some time. Times are whole, and at least 1 ms.
class TickingPipeline {
public:
    TickingPipeline(const PipelineStages& stages, const PipelineLinks& links)
        : stages_{stages}, links_{links}, devices_(stages.size()) {}

    double run() {
        const auto is_busy = [&](const Device& device) {
            return device.backwards < stages_[0].forward_ms.size() || device.until > now_;
        };
        for (; std::any_of(devices_.begin(), devices_.end(), is_busy); ++now_) {
            for (Device& device : devices_) {
                device.out.tick(now_);
                device.back.tick(now_);
            }
            for (std::size_t s = 0; s < devices_.size(); ++s)
                if (devices_[s].until <= now_)
                    start(s);
        }
        return now_;
    }

private:
    // Of one direction of a link. A message starts when it is ready and those before it are there.
    struct Carrier {
        std::vector<double> ready;  // by message
        std::size_t arrived = 0;
        double until = -1, takes = 0;  // of the message under way; -1: none is

        void tick(double now) {
            if (until == now) {
                ++arrived;
                until = -1;
            }
            if (until < 0 && arrived < ready.size() && ready[arrived] <= now)
                until = now + takes;
        }
    };
    struct Device {
        std::size_t forwards = 0, backwards = 0;
        double until = 0;
        Carrier out, back;  // to the next stage and to the one in front
    };

    void start(std::size_t s) {
        Device& device = devices_[s];
        const std::size_t all = stages_[s].forward_ms.size();
        if (device.forwards < all &&
            device.forwards - device.backwards < stages_[s].most_in_flight) {
            if (s > 0 && devices_[s - 1].out.arrived <= device.forwards)
                return;
            device.until = now_ + stages_[s].forward_ms[device.forwards++];
            if (s < links_.size()) {
                device.out.takes = links_[s].forward_ms;
                device.out.ready.push_back(device.until);
            }
        } else if (device.backwards < all) {
            if (s < links_.size() && devices_[s + 1].back.arrived <= device.backwards)
                return;
            device.until = now_ + stages_[s].backward_ms[device.backwards++];
            if (s > 0) {
                device.back.takes = links_[s - 1].backward_ms;
                device.back.ready.push_back(device.until);
            }
        }
    }

    const PipelineStages& stages_;
    const PipelineLinks& links_;
    std::vector<Device> devices_;
    double now_ = 0;
};

class RandomPipelines {
public:
    int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

    void next() {
        const auto count = static_cast<std::size_t>(draw(1, 5));
        const auto micro_batches = static_cast<std::size_t>(draw(1, 8));
        const auto extra = static_cast<std::size_t>(draw(0, 2));
        stages.clear();
        links.assign(count - 1, {});
        for (std::size_t s = 0; s < count; ++s) {
            stages.push_back(even_stage(micro_batches, 1, 1, most_in_flight(count, s, extra)));
            for (std::size_t i = 0; i < micro_batches; ++i) {
                stages[s].forward_ms[i] = draw(1, 6);
                stages[s].backward_ms[i] = draw(1, 9);
            }
        }
        for (PipelineLink& link : links)
            link = {draw(1, 7) + 0.0, draw(1, 7) + 0.0};
    }

    PipelineStages stages;
    PipelineLinks links;

private:
    std::mt19937 random_{3};
};

TEST(SimulatePipelineTest, EqualsASimulationByTheMillisecond) {
    RandomPipelines random;

    for (int instance = 0; instance < 1000; ++instance) {
        random.next();

        const auto result = simulate_pipeline(random.stages, random.links);

        ASSERT_EQ(result.makespan_ms, TickingPipeline(random.stages, random.links).run())
            << "instance " << instance;
    }
}

TEST(SimulatePipelineTest, WhatTakesLongerNeverEndsEarlier) {
    RandomPipelines random;
    int later = 0;

    for (int instance = 0; instance < 1000; ++instance) {
        random.next();
        const double before = simulate_pipeline(random.stages, random.links).makespan_ms;
        PipelineStage& stage = random.stages.back();
        if (random.draw(0, 1) == 0 && !random.links.empty())
            random.links.front().forward_ms += 3;
        else
            stage.backward_ms.front() += 3;

        const double after = simulate_pipeline(random.stages, random.links).makespan_ms;

        EXPECT_GE(after, before) << "instance " << instance;
        later += after > before ? 1 : 0;
    }

    EXPECT_GT(later, 300);
}

TEST(MostInFlightTest, IsOneForEachStageToTheEndAndAtMostTwiceThoseBehind) {
    EXPECT_EQ(most_in_flight(4, 0), 4);
    EXPECT_EQ(most_in_flight(4, 3), 1);
    EXPECT_EQ(most_in_flight(4, 0, 2), 6);
    EXPECT_EQ(most_in_flight(4, 2, 2), 3);
    EXPECT_EQ(most_in_flight(4, 3, 2), 1);
    EXPECT_THROW(most_in_flight(4, 4), InternalError);
}

}  // namespace
}  // namespace hetseq
