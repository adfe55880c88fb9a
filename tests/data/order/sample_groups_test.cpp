#include "hetseq/data/order/sample_groups.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

TEST(SampleGroupsTest, SampleIIsInGroupFloorOfIKOverN) {
    for (std::int64_t samples = 0; samples <= 70; ++samples)
        for (const std::int64_t size : {1, 2, 3, 8, 32, 64}) {
            const std::vector<Slice> groups = groups_of(samples, size);
            const std::int64_t count = samples == 0 ? 0 : std::max<std::int64_t>(1, samples / size);
            ASSERT_EQ(std::ssize(groups), count);
            std::int64_t largest = 0;
            for (std::int64_t k = 0; k < count; ++k) {
                const Slice& group = groups[static_cast<std::size_t>(k)];
                for (std::int64_t i = group.begin; i < group.end; ++i)
                    EXPECT_EQ(i * count / samples, k);
                largest = std::max(largest, group.size());
            }
            EXPECT_EQ(count == 0 ? 0 : groups.back().end, samples);
            EXPECT_EQ(largest, largest_group(samples, size));
            for (const Slice& group : groups)
                EXPECT_GE(group.size(), largest - 1);
        }
}

TEST(SampleGroupsTest, MicroBatchesAreWholeGroupsAndEven) {
    const std::vector<Slice> groups = groups_of(7 * 8, 8);

    EXPECT_THAT(cut_groups(groups, {}, {.samples = 24}),
                testing::ElementsAre(Slice{0, 24}, Slice{24, 40}, Slice{40, 56}));
    EXPECT_THAT(cut_groups(groups, {}, {.samples = 31}),
                testing::ElementsAre(Slice{0, 24}, Slice{24, 40}, Slice{40, 56}));
    EXPECT_THAT(cut_groups(groups, {}, {.samples = 32}),
                testing::ElementsAre(Slice{0, 32}, Slice{32, 56}));
    EXPECT_EQ(cut_groups(groups, {}, {}).size(), 1U);
    EXPECT_EQ(cut_groups(groups, {}, {.samples = 3}).size(), 7U);  // a group is never divided
    EXPECT_TRUE(cut_groups({}, {}, {.samples = 3}).empty());
}

TEST(SampleGroupsTest, OfUnequalLengthTheyStayBelowTheTokens) {
    const std::vector<Slice> groups = groups_of(8, 2);
    const std::vector<std::int64_t> lengths{3, 1, 2, 2, 9, 1, 1, 1};

    EXPECT_THAT(cut_groups(groups, lengths, {.tokens = 12}),
                testing::ElementsAre(Slice{0, 4}, Slice{4, 6}, Slice{6, 8}));
    EXPECT_THAT(cut_groups(groups, lengths, {.samples = 2}),
                testing::ElementsAre(Slice{0, 2}, Slice{2, 4}, Slice{4, 6}, Slice{6, 8}));
}

TEST(SampleGroupsTest, RanksGetWholeGroups) {
    GlobalBatch batch{.begin = 100, .end = 164, .group = 8};

    EXPECT_THAT(cut_by_rank(batch, std::vector<std::int64_t>{10, 54, 0}),
                testing::ElementsAre(Slice{100, 108}, Slice{108, 164}, Slice{164, 164}));
    batch.end = 110;  // one group
    EXPECT_THAT(cut_by_rank(batch, std::vector<std::int64_t>{1, 9, 0}),
                testing::ElementsAre(Slice{100, 100}, Slice{100, 110}, Slice{110, 110}));
}

TEST(SampleGroupsTest, RanksGetWholeGroupsOfUnequalCost) {
    const GlobalBatch batch{.begin = 0, .end = 8, .group = 2};
    const std::vector<std::int64_t> costs{1, 1, 1, 1, 6, 6, 1, 1};

    EXPECT_THAT(cut_by_rank(batch, std::vector<std::int64_t>{1, 1}, costs),
                testing::ElementsAre(Slice{0, 4}, Slice{4, 8}));
}

}  // namespace
}  // namespace hetseq
