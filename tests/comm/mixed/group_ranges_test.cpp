#include "comm/mixed/group_ranges.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(GroupRangesTest, OwnersAreNumberedAsInTheGroup) {
    const GroupRanges ranges =
        group_ranges({1, 4, 5}, {{5, 0, 10}, {1, 10, 20}, {0, 30, 5}, {4, 35, 1}});

    EXPECT_THAT(ranges.own,
                ElementsAre(OwnedRange{2, 0, 10}, OwnedRange{0, 10, 20}, OwnedRange{1, 35, 1}));
}

TEST(GroupRangesTest, TheFirstPassesOnWhatItDoesNotOwnItself) {
    const GroupRanges ranges = group_ranges(
        {1, 4, 5}, {{4, 0, 10}, {5, 10, 2}, {1, 12, 20}, {0, 32, 5}, {3, 37, 4}, {5, 41, 1}});

    EXPECT_THAT(ranges.to_members, ElementsAre(OwnedRange{0, 0, 12}, OwnedRange{0, 41, 1}));
    EXPECT_THAT(ranges.from_others, ElementsAre(OwnedRange{0, 32, 9}));
}

TEST(GroupRangesTest, AGroupMayOwnNothingOrAll) {
    const std::vector<OwnedRange> ranges = {{2, 0, 7}, {2, 7, 1}};

    EXPECT_THAT(group_ranges({0, 1}, ranges).own, IsEmpty());
    EXPECT_THAT(group_ranges({0, 1}, ranges).to_members, IsEmpty());
    EXPECT_THAT(group_ranges({0, 1}, ranges).from_others, ElementsAre(OwnedRange{0, 0, 8}));
    EXPECT_THAT(group_ranges({2}, ranges).own, ElementsAre(OwnedRange{0, 0, 8}));
    EXPECT_THAT(group_ranges({2}, ranges).from_others, IsEmpty());
}

}  // namespace
}  // namespace hetseq
