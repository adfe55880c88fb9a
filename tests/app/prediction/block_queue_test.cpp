#include "app/prediction/block_queue.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

struct Simulated {
    std::vector<std::int64_t> blocks;  // by rank
    double seconds = 0;                // until all are done
};

/// Ranks that take so many seconds a block work through `blocks`.
Simulated simulate(std::int64_t blocks, const std::vector<double>& seconds_of_block) {
    BlockQueue queue(blocks, static_cast<int>(seconds_of_block.size()));
    const std::size_t ranks = seconds_of_block.size();
    std::vector<std::int64_t> waiting(ranks), last(ranks, -1);
    std::vector<double> busy_until(ranks, -1);  // -1: idle
    Simulated result{std::vector<std::int64_t>(ranks), 0};
    std::int64_t next = 0;
    for (double now = 0;;) {
        while (const auto assignment = queue.next()) {
            EXPECT_EQ(assignment->block, next++);
            ++waiting[static_cast<std::size_t>(assignment->rank)];
        }
        double soonest = -1;
        for (std::size_t r = 0; r < ranks; ++r) {
            if (waiting[r] > 0 && busy_until[r] < 0)
                busy_until[r] = now + seconds_of_block[r];
            if (busy_until[r] >= 0 && (soonest < 0 || busy_until[r] < soonest))
                soonest = busy_until[r];
        }
        if (soonest < 0)
            break;
        now = soonest;
        for (std::size_t r = 0; r < ranks; ++r)
            if (busy_until[r] == now) {
                queue.finish(static_cast<int>(r), seconds_of_block[r]);
                --waiting[r];
                ++result.blocks[r];
                busy_until[r] = -1;
                result.seconds = now;
            }
    }
    EXPECT_EQ(std::accumulate(result.blocks.begin(), result.blocks.end(), std::int64_t{0}), blocks);
    return result;
}

/// All ranks busy to the end.
double bound(std::int64_t blocks, const std::vector<double>& seconds_of_block) {
    double rate = 0;
    for (const double seconds : seconds_of_block)
        rate += 1 / seconds;
    return static_cast<double>(blocks) / rate;
}

TEST(BlockQueueTest, EveryBlockGoesToOneRank) {
    for (const std::int64_t blocks : {0, 1, 2, 3, 10, 101}) {
        const Simulated done = simulate(blocks, {1, 2, 0.3});
        EXPECT_EQ(done.blocks[0] + done.blocks[1] + done.blocks[2], blocks);
    }
}

TEST(BlockQueueTest, LikeRanksGetLikeShares) {
    const Simulated done = simulate(96, {1, 1, 1});

    EXPECT_EQ(done.blocks, (std::vector<std::int64_t>{32, 32, 32}));
}

TEST(BlockQueueTest, UnlikeRanksGetWhatTheyFinishInTheSameTime) {
    for (const double slow : {2.0, 4.0, 7.0, 10.0}) {
        const std::vector<double> seconds{1, slow};
        const Simulated done = simulate(64, seconds);

        EXPECT_LE(done.seconds, 1.1 * bound(64, seconds)) << slow;
        EXPECT_GE(done.blocks[1], 1);
    }
}

TEST(BlockQueueTest, ARankThatIsMuchSlowerDoesNotKeepTheOthersWaiting) {
    const Simulated done = simulate(64, {1, 40});

    EXPECT_EQ(done.blocks, (std::vector<std::int64_t>{63, 1}));
}

TEST(BlockQueueTest, ARankHasAtMostOneBlockMoreThanItWorksOn) {
    BlockQueue queue(100, 2);
    ASSERT_TRUE(queue.next() && queue.next());
    EXPECT_FALSE(queue.next());  // their speed is not known yet

    queue.finish(0, 1);
    EXPECT_EQ(queue.next()->rank, 0);
    EXPECT_EQ(queue.next()->rank, 0);
    EXPECT_FALSE(queue.next());
}

}  // namespace
}  // namespace hetseq
