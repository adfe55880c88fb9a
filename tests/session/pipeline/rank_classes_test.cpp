#include "session/pipeline/rank_classes.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

TEST(RankClassesTest, RanksOfLikeSpeedAreOneGroupAndTheFastestComeFirst) {
    const auto groups = groups_of_like_speed({0, 1, 2, 3}, {40, 10, 21, 20});

    EXPECT_THAT(groups, ElementsAre(ElementsAre(1), ElementsAre(2, 3), ElementsAre(0)));
}

TEST(RankClassesTest, NoiseDoesNotPartRanks) {
    const auto groups = groups_of_like_speed({2, 0, 1}, {10, 10.5, 11});

    EXPECT_THAT(groups, ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(RankClassesTest, ThereAreNoMoreThanFourGroups) {
    const auto groups = groups_of_like_speed({0, 1, 2, 3, 4}, {10, 12, 20, 40, 80});

    EXPECT_THAT(groups,
                ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3), ElementsAre(4)));
}

}  // namespace
}  // namespace hetseq
