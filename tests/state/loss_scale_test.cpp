#include "hetseq/state/loss_scale.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

void apply_updates(LossScale& scale, int count) {
    for (int i = 0; i < count; ++i) {
        scale.begin();
        scale.applied();
    }
}

TEST(LossScaleTest, IsOneForEverWhereNobodyNeedsIt) {
    LossScale scale;
    scale.begin();

    EXPECT_FALSE(scale.overflowed());
    apply_updates(scale, 5000);

    EXPECT_EQ(scale.value(), 1);
    EXPECT_FALSE(scale.state());
}

TEST(LossScaleTest, IsHalvedAndThenDividedBySixteenUntilTheUpdateFits) {
    LossScale scale{LossScale::State{}};
    scale.begin();

    EXPECT_TRUE(scale.overflowed());
    EXPECT_EQ(scale.value(), 32768);
    EXPECT_TRUE(scale.overflowed());
    EXPECT_EQ(scale.value(), 2048);
    scale.applied();
    scale.begin();
    EXPECT_TRUE(scale.overflowed());

    EXPECT_EQ(scale.value(), 1024);
    EXPECT_EQ(scale.state()->overflows, 3);
}

TEST(LossScaleTest, IsNotToBlameForWhatIsNotFiniteWithoutIt) {
    LossScale scale{{.value = 16777216, .good_updates = 1999, .overflows = 4}};
    scale.begin();
    int repeats = 0;
    while (scale.overflowed())
        ++repeats;

    EXPECT_EQ(repeats, 7);
    EXPECT_EQ(scale.value(), 16777216);
    EXPECT_EQ(scale.state()->good_updates, 0);
}

TEST(LossScaleTest, DoublesAfter2000UpdatesUpTo2ToThe24th) {
    LossScale scale{LossScale::State{}};
    apply_updates(scale, 1999);
    EXPECT_EQ(scale.value(), 65536);
    apply_updates(scale, 1);
    EXPECT_EQ(scale.value(), 131072);

    scale.begin();
    EXPECT_TRUE(scale.overflowed());
    scale.applied();
    EXPECT_EQ(scale.value(), 65536);
    apply_updates(scale, 1998);
    EXPECT_EQ(scale.value(), 65536);
    apply_updates(scale, 1);
    EXPECT_EQ(scale.value(), 131072);

    apply_updates(scale, 20 * 2000);
    EXPECT_EQ(scale.value(), 16777216);
}

// Updates 1 to 3 were computed with 65536.
TEST(LossScaleTest, ALateOverflowHalvesItOnceForAllThatWereComputedWithIt) {
    LossScale scale{LossScale::State{.good_updates = 7}};

    EXPECT_TRUE(scale.overflowed_late(65536));
    EXPECT_TRUE(scale.overflowed_late(65536));
    EXPECT_EQ(scale.value(), 32768);
    EXPECT_EQ(scale.state()->good_updates, 0);
    EXPECT_TRUE(scale.overflowed_late(32768));
    EXPECT_EQ(scale.value(), 16384);
    EXPECT_EQ(scale.state()->overflows, 3);
}

TEST(LossScaleTest, AtOneALateOverflowIsNotItsFault) {
    LossScale scale{LossScale::State{.value = 2}};
    EXPECT_TRUE(scale.overflowed_late(2));

    EXPECT_FALSE(scale.overflowed_late(1));
    EXPECT_EQ(scale.value(), 1);
    EXPECT_EQ(scale.state()->overflows, 1);
    EXPECT_FALSE(LossScale{}.overflowed_late(1));
}

TEST(LossScaleTest, GoesOnFromItsState) {
    LossScale scale{LossScale::State{}};
    apply_updates(scale, 1500);
    LossScale other{*scale.state()};

    apply_updates(other, 500);

    EXPECT_EQ(other.value(), 131072);
}

}  // namespace
}  // namespace hetseq
