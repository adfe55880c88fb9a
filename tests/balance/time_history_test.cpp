#include "hetseq/balance/time_history.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TimeBlock update(double ms) {
    return {.ms = {ms, ms / 2},
            .expected_ms = {10, 0},
            .update_ms = {1, 2},
            .span_ms = ms,
            .updates = 1};
}

void add(TimeHistory& history, int updates, double ms) {
    for (int i = 0; i < updates; ++i)
        history.add(update(ms));
}

TEST(TimeHistoryTest, ShortUpdatesShareBlocksOf200Ms) {
    TimeHistory history;

    add(history, 9, 50);

    const std::vector<const TimeBlock*> blocks = history.blocks();
    ASSERT_EQ(blocks.size(), 3U);
    EXPECT_EQ(blocks[0]->updates, 4);
    EXPECT_EQ(blocks[0]->span_ms, 200);
    EXPECT_EQ(blocks[0]->ratio(0), 5);
    EXPECT_FALSE(blocks[0]->knows(1));
    EXPECT_EQ(blocks[0]->update_ms[1], 8);
    EXPECT_EQ(blocks[2]->updates, 1);
    EXPECT_EQ(history.updates(), 9);
    EXPECT_EQ(history.span_ms(), 450);
}

TEST(TimeHistoryTest, LongUpdatesAreBlocksOfTheirOwn) {
    TimeHistory history;

    add(history, 3, 700);

    EXPECT_EQ(history.blocks().size(), 3U);
}

TEST(TimeHistoryTest, ABatchLasts5SecondsAnd4Updates) {
    TimeHistory history;
    for (int batch = 0; batch < 2; ++batch) {
        add(history, 99, 50);
        EXPECT_FALSE(history.batch_ended());
        add(history, 1, 50);
        EXPECT_TRUE(history.batch_ended());
    }
    add(history, 3, 4000);
    EXPECT_FALSE(history.batch_ended());
    add(history, 1, 4000);

    ASSERT_EQ(history.batches().size(), 3U);
    EXPECT_EQ(history.batches()[0].size(), 25U);
    EXPECT_EQ(history.batches()[2].size(), 4U);
}

TEST(TimeHistoryTest, KeepsTwelveBatches) {
    TimeHistory history;

    add(history, 4 * 20, 2000);

    EXPECT_EQ(history.batches().size(), 12U);
    EXPECT_EQ(history.updates(), 80);
}

TEST(TimeHistoryTest, ThreeBlocksAndTwelveUpdatesTell) {
    TimeHistory history;

    add(history, 11, 100);
    EXPECT_TRUE(history.last_blocks(1).empty());
    add(history, 1, 100);
    EXPECT_EQ(history.last_blocks(1).size(), 6U);
    EXPECT_TRUE(history.last_blocks(2).empty());
    add(history, 12, 100);
    EXPECT_EQ(history.last_blocks(2).size(), 12U);

    history.forget();
    add(history, 29, 20);  // 580 ms
    EXPECT_TRUE(history.last_blocks(1).empty());
    add(history, 1, 20);
    EXPECT_EQ(history.last_blocks(1).size(), 3U);
}

TEST(TimeHistoryTest, EightUpdatesTellWhereTheyAreLong) {
    TimeHistory history;

    add(history, 7, 2000);
    EXPECT_TRUE(history.last_blocks(1).empty());
    add(history, 1, 2000);
    EXPECT_EQ(history.last_blocks(1).size(), 8U);
}

TEST(TimeHistoryTest, ForgetsAll) {
    TimeHistory history;
    add(history, 30, 1000);

    history.forget();

    EXPECT_EQ(history.updates(), 0);
    EXPECT_EQ(history.span_ms(), 0);
    EXPECT_TRUE(history.batches().empty());
    EXPECT_TRUE(history.blocks().empty());
    EXPECT_TRUE(history.last_blocks(1).empty());
    EXPECT_FALSE(history.batch_ended());
}

}  // namespace
}  // namespace hetseq
