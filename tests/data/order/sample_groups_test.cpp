#include "hetseq/data/order/sample_groups.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

std::shared_ptr<const std::vector<Slice>> shared_groups(std::int64_t samples, std::int64_t size) {
    return std::make_shared<const std::vector<Slice>>(groups_of(samples, size));
}

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
    GlobalBatch batch{.begin = 100, .end = 164};
    batch.groups = shared_groups(64, 8);

    EXPECT_THAT(cut_by_rank(batch, std::vector<std::int64_t>{10, 54, 0}),
                testing::ElementsAre(Slice{100, 108}, Slice{108, 164}, Slice{164, 164}));
    batch.end = 110;
    batch.groups = shared_groups(10, 8);  // one
    EXPECT_THAT(cut_by_rank(batch, std::vector<std::int64_t>{1, 9, 0}),
                testing::ElementsAre(Slice{100, 100}, Slice{100, 110}, Slice{110, 110}));
}

TEST(SampleGroupsTest, RanksGetWholeGroupsOfUnequalCost) {
    GlobalBatch batch{.begin = 0, .end = 8};
    batch.groups = shared_groups(8, 2);
    const std::vector<std::int64_t> costs{1, 1, 1, 1, 6, 6, 1, 1};

    EXPECT_THAT(cut_by_rank(batch, std::vector<std::int64_t>{1, 1}, costs),
                testing::ElementsAre(Slice{0, 4}, Slice{4, 8}));
}

TEST(SampleGroupsTest, ABatchIsMadeOfThem) {
    BatchPlan plan(150, 64);
    plan.set_groups(8);

    EXPECT_EQ(*plan.batch(1).groups, groups_of(64, 8));
    EXPECT_EQ(*plan.batch(2).groups, groups_of(22, 8));
    EXPECT_EQ(plan.largest_group(), 11);
}

TEST(SampleGroupsTest, ThoseOfAnEpochDoNotDependOnItsBatches) {
    for (const std::int64_t batch_size : {1, 8, 20, 64, 1000}) {
        BatchPlan plan(150, batch_size);
        plan.set_groups_of_epoch(8);
        std::vector<Slice> found;
        for (std::int64_t update = 0; update < plan.batches_per_epoch(); ++update) {
            const GlobalBatch batch = plan.batch(update);
            EXPECT_LE(batch.size(), std::max<std::int64_t>(batch_size, 9));
            for (const Slice& group : *batch.groups)
                found.push_back({batch.begin + group.begin, batch.begin + group.end});
        }
        EXPECT_EQ(found, groups_of(150, 8));
        EXPECT_EQ(plan.batch(plan.batches_per_epoch()).begin, 0);
    }
}

}  // namespace
}  // namespace hetseq
