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

// The last activations of stage 1 have left when its first gradients are ready. Stage 0: F0 0-1, F1
// 1-2; messages 1-2, 2-3. Stage 1: F0 2-3, F1 3-4; activations 3-7, 7-11. Stage 2: F0 7-8, B0 8-9;
// F1 11-12, B1 12-13; gradients 9-10, 13-14. Stage 1: B0 10-11, B1 14-15; gradients 11-17, 17-23.
// Stage 0: B0 17-18, B1 23-24.
TEST(SimulatePipelineTest, MessagesThatDoNotMeetDoNotWaitForCards) {
    const PipelineStages pipeline{
        even_stage(2, 1, 1, 3), even_stage(2, 1, 1, 2), even_stage(2, 1, 1, 1)};

    const auto result = simulate_pipeline(pipeline, PipelineLinks{{1, 6}, {4, 1}});

    EXPECT_EQ(result.makespan_ms, 24);
    EXPECT_EQ(result.stages[2].end_ms, 13);
}

// As above, but the activations take 6 ms: 3-9 and 9-15. Stage 2: F0 9-10, B0 10-11; gradients
// 11-12. Stage 1: B0 12-13, and its gradients wait for its card until 15: 15-21. Stage 2: F1 15-16,
// B1 16-17; gradients 17-18. Stage 1: B1 18-19; gradients 21-27. Stage 0: B1 27-28.
PipelineStages three_even_stages() {
    return {even_stage(2, 1, 1, 3), even_stage(2, 1, 1, 2), even_stage(2, 1, 1, 1)};
}

TEST(SimulatePipelineTest, AHostSendsItsNeighboursOneMessageAfterAnother) {
    const auto result = simulate_pipeline(three_even_stages(), PipelineLinks{{1, 6}, {6, 1}});

    EXPECT_EQ(result.makespan_ms, 28);
}

// Then the gradients leave at 13 and at 19: 13-19, 19-25.
TEST(SimulatePipelineTest, WithinAHostMessagesDoNotTakeItsCard) {
    PipelineStages pipeline = three_even_stages();
    pipeline[0].host = pipeline[1].host = 5;

    EXPECT_EQ(simulate_pipeline(pipeline, PipelineLinks{{1, 6}, {6, 1}}).makespan_ms, 26);
}

// A card that is twice as fast as the link is free for other messages half of the time: the second
// activations, 9-15, let the gradients go from 13 on.
TEST(SimulatePipelineTest, AFastCardIsFreeBeforeTheMessageIsThere) {
    const PipelineLinks links{{.forward_ms = 1, .backward_ms = 6},
                              {.forward_ms = 6, .backward_ms = 1, .front_card = 0.5}};

    EXPECT_EQ(simulate_pipeline(three_even_stages(), links).makespan_ms, 26);
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

// The same pipeline, millisecond by millisecond: each device, each direction of a link and each way
// of a host's card is free or has work until some time. Times are whole, and at least 1 ms.
class TickingPipeline {
public:
    TickingPipeline(const PipelineStages& stages, const PipelineLinks& links)
        : stages_{stages}, links_{links}, devices_(stages.size()) {}

    double run() {
        const auto is_busy = [&](const Device& device) {
            return device.backwards < stages_[0].forward_ms.size() || device.until > now_;
        };
        for (; std::any_of(devices_.begin(), devices_.end(), is_busy); ++now_) {
            for (std::size_t s = 0; s < devices_.size(); ++s)
                end(s);
            for (Message& message : messages_)
                carry(message);
            for (std::size_t s = 0; s < devices_.size(); ++s)
                if (devices_[s].until <= now_)
                    start(s);
        }
        return now_;
    }

private:
    struct Device {
        std::size_t forwards = 0, backwards = 0;     // begun
        std::size_t activations = 0, gradients = 0;  // there
        bool goes_forward = false;
        double until = -1;
    };
    struct Message {
        std::size_t from = 0, to = 0;  // stages
        double begin = -1;             // -1: it waits
    };

    // What a stage has computed is sent.
    void end(std::size_t s) {
        if (devices_[s].until != now_)
            return;
        if (devices_[s].goes_forward && s + 1 < devices_.size())
            messages_.push_back({s, s + 1});
        if (!devices_[s].goes_forward && s > 0)
            messages_.push_back({s, s - 1});
    }

    const PipelineLink& link_of(const Message& message) const {
        return links_[std::min(message.from, message.to)];
    }
    double takes(const Message& message) const {
        const PipelineLink& link = link_of(message);
        return message.from < message.to ? link.forward_ms : link.backward_ms;
    }
    bool shares_host(std::size_t a, std::size_t b) const {
        return a == b || (stages_[a].host && stages_[a].host == stages_[b].host);
    }
    // Of a stage's card, for one of its messages.
    double part(const Message& message, std::size_t stage) const {
        const PipelineLink& link = link_of(message);
        return stage == std::min(message.from, message.to) ? link.front_card : link.behind_card;
    }

    void carry(Message& message) {
        const double ms = takes(message);
        if (message.begin >= 0) {
            Device& to = devices_[message.to];
            if (now_ == message.begin + ms)
                ++(message.from < message.to ? to.activations : to.gradients);
            return;
        }
        const bool over_cards = !shares_host(message.from, message.to);
        for (const Message& other : messages_) {
            if (other.begin < 0)
                continue;
            const double since = now_ - other.begin;
            const bool on_link = other.from == message.from && other.to == message.to;
            if (on_link && since < takes(other))
                return;
            if (!over_cards || shares_host(other.from, other.to))
                continue;
            if (shares_host(other.from, message.from) &&
                since < part(other, other.from) * takes(other))
                return;
            if (shares_host(other.to, message.to) && since < part(other, other.to) * takes(other))
                return;
        }
        message.begin = now_;
    }

    void start(std::size_t s) {
        Device& device = devices_[s];
        const std::size_t all = stages_[s].forward_ms.size();
        device.goes_forward =
            device.forwards < all && device.forwards - device.backwards < stages_[s].most_in_flight;
        if (device.goes_forward && (s == 0 || device.activations > device.forwards))
            device.until = now_ + stages_[s].forward_ms[device.forwards++];
        else if (!device.goes_forward && device.backwards < all &&
                 (s == links_.size() || device.gradients > device.backwards))
            device.until = now_ + stages_[s].backward_ms[device.backwards++];
    }

    const PipelineStages& stages_;
    const PipelineLinks& links_;
    std::vector<Device> devices_;
    std::vector<Message> messages_;  // in the order in which they were ready
    double now_ = 0;
};

class RandomPipelines {
public:
    int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

    // Of 1 to 5 stages. `hosts`: none has a number where it is 0.
    void next(int hosts) {
        const auto count = static_cast<std::size_t>(draw(1, 5));
        const auto micro_batches = static_cast<std::size_t>(draw(1, 8));
        const auto extra = static_cast<std::size_t>(draw(0, 2));
        stages.clear();
        links.assign(count - 1, {});
        for (std::size_t s = 0; s < count; ++s) {
            stages.push_back(even_stage(micro_batches, 1, 1, most_in_flight(count, s, extra)));
            if (hosts > 0)
                stages[s].host = static_cast<std::size_t>(draw(1, hosts));
            for (std::size_t i = 0; i < micro_batches; ++i) {
                stages[s].forward_ms[i] = draw(1, 6);
                stages[s].backward_ms[i] = draw(1, 9);
            }
        }
        for (PipelineLink& link : links)
            link = {.forward_ms = draw(1, 7) + 0.0,
                    .backward_ms = draw(1, 7) + 0.0,
                    .front_card = 0.25 * draw(1, 4),
                    .behind_card = 0.25 * draw(1, 4)};
    }

    PipelineStages stages;
    PipelineLinks links;

private:
    std::mt19937 random_{3};
};

// Cards may be free between two milliseconds: so all times are four times as long.
void lengthen(RandomPipelines& pipeline) {
    for (PipelineStage& stage : pipeline.stages)
        for (std::vector<double>* times : {&stage.forward_ms, &stage.backward_ms})
            for (double& ms : *times)
                ms *= 4;
    for (PipelineLink& link : pipeline.links) {
        link.forward_ms *= 4;
        link.backward_ms *= 4;
    }
}

TEST(SimulatePipelineTest, EqualsASimulationByTheMillisecond) {
    RandomPipelines random;
    int held_up = 0;

    for (int instance = 0; instance < 1000; ++instance) {
        random.next(instance % 4);
        lengthen(random);

        const auto result = simulate_pipeline(random.stages, random.links);

        ASSERT_EQ(result.makespan_ms, TickingPipeline(random.stages, random.links).run())
            << "instance " << instance;
        for (PipelineStage& stage : random.stages)
            stage.host = 1;
        held_up += result.makespan_ms > simulate_pipeline(random.stages, random.links).makespan_ms;
    }

    EXPECT_GT(held_up, 100);
}

// On one host: messages that share cards may leave in another order, and a pipeline end earlier.
TEST(SimulatePipelineTest, WhatTakesLongerNeverEndsEarlier) {
    RandomPipelines random;
    int later = 0;

    for (int instance = 0; instance < 1000; ++instance) {
        random.next(1);
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
