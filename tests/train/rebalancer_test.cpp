#include "hetseq/train/rebalancer.hpp"

#include <gtest/gtest.h>

#include "hetseq/train/record/recorder.hpp"
#include "hetseq/train/shares/share_plan.hpp"

#include "test_world.hpp"

namespace hetseq {
namespace {

using Units = std::vector<std::int64_t>;

// The batches have 12 samples a rank. An epoch has 5, the last one half as large.
class RebalancerTest : public testing::Test {
protected:
    Rebalancer rebalancer(RebalancerOptions options, const TrainingProgress& progress = {}) {
        options.batch_size = batch_size_;
        options.updates = 20;
        return {shares_, recorder_, AllocationLog{"", {}, progress.allocations}, progress, options};
    }

    GlobalBatch batch(std::int64_t update) const {
        const std::int64_t begin = update * batch_size_;
        return {.begin = begin, .end = begin + (update % 5 == 4 ? batch_size_ / 2 : batch_size_)};
    }

    // `size` for all ranks but the first, which has what is left of a full batch.
    Units but_the_first(std::int64_t size) const {
        Units units(static_cast<std::size_t>(world_.size()), size);
        units.front() = batch_size_ - size * (world_.size() - 1);
        return units;
    }

    const HostComm world_ = test::world();
    const std::int64_t batch_size_ = 12 * world_.size();
    SharePlan shares_{
        world_, "equal", std::vector<std::int64_t>(static_cast<std::size_t>(world_.size()), 4)};
    Recorder recorder_{nullptr, world_.rank(), {}};
    const std::vector<double> equal_ms_ =
        std::vector<double>(static_cast<std::size_t>(world_.size()), 10);
};

TEST_F(RebalancerTest, CutsAsTheSharesSayAndTellsWhatIsAtWork) {
    Rebalancer cuts = rebalancer({});

    for (std::int64_t update = 0; update < 5; ++update) {
        std::int64_t next = batch(update).begin;
        for (const Slice& slice : cuts.cut(batch(update))) {
            EXPECT_EQ(slice.begin, next);
            next = slice.end;
        }
        EXPECT_EQ(next, batch(update).end);
    }

    for (std::int64_t update = 0; update < 5; ++update) {
        cuts.begin_update({}, equal_ms_, {}, {});
        EXPECT_EQ(cuts.allocation(),
                  Units(static_cast<std::size_t>(world_.size()), update == 4 ? 6 : 12));
    }
    TrainingProgress progress;
    cuts.save_to(progress);
    EXPECT_EQ(progress.reallocations, 0);
    EXPECT_EQ(progress.allocations, (AllocationsByUpdate{{0, but_the_first(12)}}));
}

TEST_F(RebalancerTest, RepeatsRecordedCuts) {
    const AllocationsByUpdate recorded{{0, but_the_first(8)}, {3, but_the_first(10)}};
    Rebalancer cuts = rebalancer({.replay = recorded});

    for (std::int64_t update = 0; update < 4; ++update) {
        cuts.cut(batch(update));
        cuts.begin_update({}, equal_ms_, {}, {});
        EXPECT_EQ(cuts.allocation(), but_the_first(update < 3 ? 8 : 10));
    }

    TrainingProgress progress;
    cuts.save_to(progress);
    if (world_.size() > 1) {
        EXPECT_EQ(progress.allocations, recorded);
    }
    EXPECT_EQ(progress.reallocations, world_.size() > 1 ? 1 : 0);
}

TEST_F(RebalancerTest, AContinuedRunTakesTheRecordedCutThatHolds) {
    const AllocationsByUpdate recorded{{0, but_the_first(8)}, {3, but_the_first(10)}};
    Rebalancer cuts = rebalancer({.replay = recorded}, {.updates = 6, .reallocations = 1});

    cuts.cut(batch(6));
    cuts.begin_update({}, equal_ms_, {}, {});

    EXPECT_EQ(cuts.allocation(), but_the_first(10));
    TrainingProgress progress;
    cuts.save_to(progress);
    EXPECT_EQ(progress.reallocations, 1);
}

TEST_F(RebalancerTest, AnAgreedCutHoldsFromTheNextRequestOn) {
    Rebalancer cuts = rebalancer({});
    cuts.cut(batch(0));
    cuts.cut(batch(1));

    cuts.begin_update(but_the_first(7), equal_ms_, {}, {});
    cuts.cut(batch(2));

    EXPECT_EQ(cuts.allocation(), but_the_first(12));
    cuts.begin_update({}, equal_ms_, {}, {});
    EXPECT_EQ(cuts.allocation(), but_the_first(12));
    cuts.begin_update({}, equal_ms_, {}, {});
    EXPECT_EQ(cuts.allocation(), but_the_first(7));
    TrainingProgress progress;
    cuts.save_to(progress);
    if (world_.size() > 1) {
        EXPECT_EQ(progress.allocations,
                  (AllocationsByUpdate{{0, but_the_first(12)}, {2, but_the_first(7)}}));
    }
}

TEST_F(RebalancerTest, TellsSinceWhenFullBatchesAreCutAsTheyAre) {
    const AllocationsByUpdate recorded{{0, but_the_first(8)}, {7, but_the_first(10)}};
    Rebalancer cuts = rebalancer({.replay = recorded}, {.updates = 3});
    EXPECT_TRUE(cuts.full_allocation().empty());

    for (std::int64_t update = 3; update < 10; ++update) {  // 4 and 9 end epochs
        cuts.cut(batch(update));
        cuts.begin_update({}, equal_ms_, {}, {});
        const bool is_new = update >= 7 && world_.size() > 1;
        EXPECT_EQ(cuts.cut_since(), is_new ? 7 : 3) << update;
        EXPECT_EQ(cuts.full_allocation(), but_the_first(is_new ? 10 : 8)) << update;
    }
}

TEST_F(RebalancerTest, ACutThatNoBatchIsLeftForIsNone) {
    Rebalancer cuts = rebalancer({}, {.updates = 18});
    cuts.cut(batch(18));
    cuts.cut(batch(20));

    cuts.begin_update(but_the_first(7), equal_ms_, {}, {});

    TrainingProgress progress;
    cuts.save_to(progress);
    EXPECT_EQ(progress.reallocations, 0);
    EXPECT_EQ(progress.allocations.size(), 1U);
}

TEST_F(RebalancerTest, WhatMemoryHoldsStandsInTheCostsThatAreKept) {
    Rebalancer cuts = rebalancer({.follows = true});
    cuts.cut(batch(0));
    std::vector<double> micro_batches(static_cast<std::size_t>(world_.size()), 0);
    micro_batches.back() = 3;

    cuts.begin_update({}, equal_ms_, {}, micro_batches);

    TrainingProgress progress;
    cuts.save_to(progress);
    EXPECT_EQ(progress.costs.back().micro_batch, 3);
    EXPECT_EQ(progress.costs.front().micro_batch, world_.size() > 1 ? 4 : 3);
}

TEST_F(RebalancerTest, ProposesABetterCutOnceWhereItFollows) {
    for (const bool follows : {true, false}) {
        Rebalancer cuts = rebalancer({.follows = follows});
        std::vector<double> ms = equal_ms_;
        ms.front() *= 10;
        for (std::int64_t update = 0; update < 13; ++update) {
            cuts.cut({.begin = 0, .end = batch_size_});
            EXPECT_TRUE(cuts.take_proposal().empty());
            cuts.begin_update({}, ms, {}, {});
        }

        const Units proposal = cuts.take_proposal();

        if (follows && world_.size() > 1)
            EXPECT_LT(proposal.front(), 12);
        else
            EXPECT_TRUE(proposal.empty());
        EXPECT_TRUE(cuts.take_proposal().empty());
    }
}

}  // namespace
}  // namespace hetseq
