#include "hetseq/data/order/global_order.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

std::vector<std::int64_t> sorted_samples(const GlobalOrder& order) {
    std::vector<std::int64_t> samples;
    for (std::int64_t position = 0; position < order.size(); ++position)
        samples.push_back(order(position));
    std::sort(samples.begin(), samples.end());
    return samples;
}

std::vector<std::int64_t> iota(std::int64_t n) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(n));
    std::iota(values.begin(), values.end(), 0);
    return values;
}

std::string name(const GlobalOrder::Geometry& g) {
    return std::to_string(g.samples) + " samples, blocks of " + std::to_string(g.block_length) +
           ", " + std::to_string(g.shuffle_blocks) + " mixed";
}

// A group's positions must hold exactly the samples of its blocks.
void expect_groups_hold_their_blocks(const GlobalOrder& order, const GlobalOrder::Geometry& g) {
    std::int64_t covered = 0;
    for (std::int64_t group = 0; group < order.groups(); ++group) {
        EXPECT_EQ(order.group_begin(group), covered);
        std::set<std::int64_t> expected;
        for (const std::int64_t block : order.group_blocks(group)) {
            EXPECT_EQ(order.group_of_block(block, 0), group);
            for (std::int64_t i = 0; i < g.block_length; ++i) {
                if (block * g.block_length + i < g.samples)
                    expected.insert(block * g.block_length + i);
            }
        }
        std::set<std::int64_t> found;
        for (std::int64_t p = order.group_begin(group); p < order.group_end(group); ++p) {
            EXPECT_EQ(order.group_of(p), group);
            found.insert(order(p));
        }
        EXPECT_EQ(found, expected) << "group " << group;
        covered = order.group_end(group);
    }
    EXPECT_EQ(covered, g.samples);
}

TEST(GlobalOrderTest, EverySmallGeometryIsABijectionByGroups) {
    for (std::int64_t samples = 1; samples <= 10; ++samples) {
        for (std::int64_t block_length = 1; block_length <= 11; ++block_length) {
            for (std::int64_t shuffle_blocks = 1; shuffle_blocks <= 11; ++shuffle_blocks) {
                const GlobalOrder::Geometry g{samples, block_length, shuffle_blocks};
                SCOPED_TRACE(name(g));
                for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
                    const GlobalOrder order{g, 3, epoch};
                    EXPECT_EQ(sorted_samples(order), iota(samples));
                    expect_groups_hold_their_blocks(order, g);
                }
            }
        }
    }
}

TEST(GlobalOrderTest, LargeCorpusIsABijectionByGroups) {
    const GlobalOrder::Geometry g{100'003, 128, 8};
    const GlobalOrder order{g, 1, 2};

    EXPECT_EQ(sorted_samples(order), iota(g.samples));
    expect_groups_hold_their_blocks(order, g);
}

TEST(GlobalOrderTest, RaggedBlockLandsInEverySlot) {
    const GlobalOrder::Geometry g{13, 3, 2};  // 5 blocks, the last of one sample
    std::set<std::int64_t> short_groups;

    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const GlobalOrder order{g, seed, 0};
        EXPECT_EQ(sorted_samples(order), iota(g.samples));
        short_groups.insert(order.group_of_block(4, 0));
    }

    EXPECT_EQ(short_groups, (std::set<std::int64_t>{0, 1, 2}));
}

TEST(GlobalOrderTest, EpochsAndSeedsDiffer) {
    const GlobalOrder::Geometry g{1000, 10, 8};
    const GlobalOrder base{g, 1, 0};
    for (const GlobalOrder& other : {GlobalOrder{g, 1, 1}, GlobalOrder{g, 2, 0}}) {
        int equal = 0;

        for (std::int64_t p = 0; p < g.samples; ++p)
            equal += base(p) == other(p);

        EXPECT_LT(equal, 20);
    }
}

TEST(GlobalOrderTest, WithoutShufflingPositionIsSample) {
    const GlobalOrder::Geometry g{25, 4, 8};
    const GlobalOrder order{g, 1, 3, Shuffle::no};

    for (std::int64_t p = 0; p < g.samples; ++p)
        EXPECT_EQ(order(p), p);

    EXPECT_EQ(order.groups(), 7);
    expect_groups_hold_their_blocks(order, g);
}

TEST(GlobalOrderTest, ReachesAnyPositionOfAHugeCorpus) {
    const GlobalOrder::Geometry g{std::int64_t{1} << 48, 2048, 8};
    const GlobalOrder order{g, 1, 0};
    std::set<std::int64_t> samples;

    for (std::int64_t i = 0; i < 1000; ++i)
        samples.insert(order(i * (g.samples / 1000)));

    EXPECT_EQ(samples.size(), 1000U);
}

}  // namespace
}  // namespace hetseq
