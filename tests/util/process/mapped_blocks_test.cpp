#include "hetseq/util/process/mapped_blocks.hpp"

#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(MappedBlocksTest, ABlockThatWasGivenBackIsTakenByWhatFitsIt) {
    MappedBlocks cache;
    void* const first = cache.take(10 * mib);
    std::memset(first, 1, 10 * mib);
    EXPECT_TRUE(cache.give_back(first));

    EXPECT_EQ(cache.take(9 * mib), first);
    EXPECT_NE(cache.take(9 * mib), first);
    EXPECT_EQ(cache.held(), 19 * mib);
}

TEST(MappedBlocksTest, ABlockThatIsMuchTooLargeStaysForOthers) {
    MappedBlocks cache;
    void* const large = cache.take(64 * mib);
    cache.give_back(large);

    EXPECT_NE(cache.take(2 * mib), large);
    EXPECT_EQ(cache.take(60 * mib), large);
}

TEST(MappedBlocksTest, WhatNoneFitsReplacesSmallerOnes) {
    MappedBlocks cache;
    void* const small = cache.take(10 * mib);
    cache.give_back(small);

    void* const large = cache.take(12 * mib);

    std::memset(large, 1, 12 * mib);
    EXPECT_EQ(cache.held(), 12 * mib);
}

// A heap's gaps would add up to far more.
TEST(MappedBlocksTest, HoldsAboutWhatIsInUseAtOnceWhateverTheOrderOfSizes) {
    MappedBlocks cache;
    std::vector<void*> blocks;
    for (std::size_t round = 0; round < 300; ++round) {
        for (std::size_t i = 0; i < 4; ++i)
            blocks.push_back(cache.take((60 + (round * 7 + i * 5) % 20) * mib));
        for (void* block : blocks)
            EXPECT_TRUE(cache.give_back(block));
        blocks.clear();
    }

    EXPECT_LE(cache.held(), 4 * 80 * mib);
}

// As a stage's micro-batches in flight: of other lengths each time, given back in another order.
TEST(MappedBlocksTest, HoldsAboutWhatIsInUseOfSmallBlocksToo) {
    constexpr std::size_t kib = std::size_t{1} << 10;
    MappedBlocks cache;
    std::vector<std::vector<void*>> flights;
    for (std::size_t round = 0; round < 500; ++round) {
        auto& flight = flights.emplace_back();
        for (std::size_t i = 0; i < 20; ++i)
            flight.push_back(cache.take((64 + (round * 37 + i * 61) % 448) * kib));
        if (flights.size() < 4)
            continue;
        for (void* block : flights.front())
            EXPECT_TRUE(cache.give_back(block));
        flights.erase(flights.begin());
    }

    // 23 MiB are in use at once on the average.
    EXPECT_LE(cache.held(), 34 * mib);
}

TEST(MappedBlocksTest, KnowsWhatIsNotItsOwn) {
    MappedBlocks cache;
    int other = 0;

    EXPECT_FALSE(cache.give_back(&other));
    void* const block = cache.take(mib);
    EXPECT_TRUE(cache.give_back(block));
    EXPECT_FALSE(cache.give_back(block));
}

TEST(MappedBlocksTest, ThatTheSystemHasNoMoreIsTold) {
    MappedBlocks cache;
    cache.give_back(cache.take(8 * mib));

    EXPECT_EQ(cache.take(std::size_t{1} << 60), nullptr);
    EXPECT_EQ(cache.held(), 0u);  // it gave all that it could
}

TEST(MappedBlocksTest, WhatIsNotInUseCanBeReleased) {
    MappedBlocks cache;
    void* const used = cache.take(3 * mib);
    cache.give_back(cache.take(8 * mib));

    cache.release();

    EXPECT_EQ(cache.held(), 3 * mib);
    EXPECT_TRUE(cache.give_back(used));
}

TEST(MappedBlocksTest, ServesSeveralThreads) {
    MappedBlocks cache;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&cache, t] {
            for (std::size_t i = 0; i < 200; ++i) {
                auto* const block = static_cast<char*>(cache.take((1 + (t + i) % 3) * mib));
                block[0] = static_cast<char>(t);
                block[mib - 1] = static_cast<char>(i);
                EXPECT_EQ(block[0], static_cast<char>(t));
                EXPECT_TRUE(cache.give_back(block));
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_LE(cache.held(), 4 * 6 * mib);
}

}  // namespace
}  // namespace hetseq
