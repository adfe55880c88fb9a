#include "hetseq/data/blocks/block_schedule.hpp"

#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/data/order/global_order.hpp"

namespace hetseq {
namespace {

using Block = BlockSchedule::Block;

TEST(BlockScheduleTest, LoadsABlockOnceWhileItStays) {
    BlockSchedule schedule{2};

    const BlockUse first = schedule.use(std::vector<Block>{{7, 1}}, 0);
    const BlockUse second = schedule.use(std::vector<Block>{{7, 2}}, 1);

    EXPECT_EQ(first.loads.size(), 1U);
    EXPECT_TRUE(second.loads.empty());
    EXPECT_EQ(second.slots, first.slots);
    EXPECT_EQ(second.loaded_below, 1);
}

TEST(BlockScheduleTest, ASlotIsReusedOnlyBehindItsLastTicket) {
    BlockSchedule schedule{1};
    schedule.use(std::vector<Block>{{7, 9}}, 0);
    schedule.use(std::vector<Block>{{7, 9}}, 0);

    const BlockUse other = schedule.use(std::vector<Block>{{8, 9}}, 1);

    ASSERT_EQ(other.loads.size(), 1U);
    EXPECT_EQ(other.loads[0], (BlockLoad{.id = 1, .block = 8, .slot = 0, .released_below = 2}));
}

TEST(BlockScheduleTest, EvictsTheBlockUsedFarthestAway) {
    BlockSchedule schedule{3};
    const BlockUse first = schedule.use(std::vector<Block>{{1, 10}, {2, 30}, {3, 20}}, 0);

    const BlockUse second = schedule.use(std::vector<Block>{{4, 40}}, 1);

    EXPECT_EQ(second.slots[0], first.slots[1]);
}

TEST(BlockScheduleTest, ABlockWhoseTimePassedUnusedGoesFirst) {
    BlockSchedule schedule{2};
    const BlockUse first = schedule.use(std::vector<Block>{{1, 2}, {2, 30}}, 0);

    const BlockUse second = schedule.use(std::vector<Block>{{4, 40}}, 5);

    EXPECT_EQ(second.slots[0], first.slots[0]);
}

TEST(BlockScheduleTest, BlocksOfOneUseNeverEvictEachOther) {
    BlockSchedule schedule{3};
    schedule.use(std::vector<Block>{{1, 9}, {2, 9}, {3, 9}}, 0);

    const BlockUse use = schedule.use(std::vector<Block>{{4, 5}, {3, 5}, {5, 5}}, 5);

    EXPECT_EQ(std::set<std::int64_t>(use.slots.begin(), use.slots.end()).size(), 3U);
    EXPECT_EQ(use.loads.size(), 2U);
}

TEST(BlockScheduleTest, PrefetchLeavesWhatIsUsedBefore) {
    BlockSchedule schedule{2};
    schedule.use(std::vector<Block>{{1, 0}}, 0);  // used again now

    const auto loads = schedule.prefetch(std::vector<std::int64_t>{2, 3}, 0, 1);

    ASSERT_EQ(loads.size(), 1U);
    EXPECT_EQ(loads[0].block, 2);
    EXPECT_TRUE(schedule.use(std::vector<Block>{{2, 9}}, 1).loads.empty());
}

// Plays epochs of shuffled groups against a cache and checks every promise of the schedule.
struct Replay {
    explicit Replay(std::int64_t slots) : schedule{slots} {}

    void play(const GlobalOrder::Geometry& geometry, std::int64_t epochs, bool ahead) {
        for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
            const GlobalOrder order{geometry, 1, epoch};
            const GlobalOrder next{geometry, 1, epoch + 1};
            for (std::int64_t group = 0; group < order.groups(); ++group) {
                const std::int64_t now = epoch * order.groups() + group;
                std::vector<Block> blocks;
                for (const std::int64_t block : order.group_blocks(group))
                    blocks.push_back(
                        {block, (epoch + 1) * order.groups() + next.group_of_block(block, 0)});
                check(schedule.use(blocks, now));
                if (ahead && group + 1 < order.groups())
                    apply(schedule.prefetch(order.group_blocks(group + 1), now, now + 1));
            }
        }
    }

    void apply(const std::vector<BlockLoad>& some) {
        for (const BlockLoad& load : some) {
            EXPECT_EQ(load.id, static_cast<std::int64_t>(loads));
            EXPECT_GE(load.released_below, last_use[load.slot]);
            holds[load.slot] = load.block;
            ++loads;
        }
    }

    void check(const BlockUse& use) {
        apply(use.loads);
        for (std::size_t i = 0; i < use.blocks.size(); ++i) {
            EXPECT_EQ(holds[use.slots[i]], use.blocks[i]);
            last_use[use.slots[i]] = use.ticket + 1;
        }
    }

    BlockSchedule schedule;
    std::map<std::int64_t, std::int64_t> holds;     // block by slot
    std::map<std::int64_t, std::int64_t> last_use;  // ticket + 1 by slot
    std::size_t loads = 0;
};

TEST(BlockScheduleTest, EverySlotHoldsWhatItsUserExpects) {
    for (const std::int64_t slots : {2, 3, 5, 8, 13}) {
        for (const bool ahead : {false, true}) {
            Replay replay{slots};
            replay.play({130, 10, 2}, 6, ahead);
            EXPECT_GE(replay.loads, 13U);
        }
    }
}

TEST(BlockScheduleTest, ACorpusThatFitsIsLoadedOnce) {
    Replay replay{13};

    replay.play({130, 10, 2}, 10, true);

    EXPECT_EQ(replay.loads, 13U);
}

// In a random order a cache of half the corpus saves about half the reads, which evicting the least
// recently used block would not (it keeps what was just read, needed last on average).
TEST(BlockScheduleTest, HalfACacheSavesHalfTheReads) {
    Replay replay{50};

    replay.play({1000, 10, 1}, 20, false);

    EXPECT_LT(replay.loads, 20U * 100U * 6 / 10);
}

}  // namespace
}  // namespace hetseq
