#include "hetseq/train/record/progress_bar.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr ProgressNow half{.update = 1407,
                           .total_updates = 2814,
                           .loss = 0.3125,
                           .units_per_second = 92784,
                           .seconds_left = 33};

TEST(ProgressTextTest, TellsPlaceLossRateAndTimeLeft) {
    EXPECT_EQ(progress_text(half, 200),
              "[==========          ]  50 %  1407/2814  loss 0.3125  92,780 samples/s  ETA 0:33");
}

TEST(ProgressTextTest, IsFullAtTheEndAlone) {
    ProgressNow now = half;
    now.update = 2813;
    EXPECT_THAT(progress_text(now, 80), HasSubstr("= ]  99 %"));
    now.update = 2814;
    EXPECT_THAT(progress_text(now, 80), HasSubstr("==] 100 %"));
}

TEST(ProgressTextTest, FitsTheTerminal) {
    EXPECT_EQ(progress_text(half, 41).size(), 40U);
    EXPECT_THAT(progress_text(half, 0), IsEmpty());
}

TEST(ProgressBarTest, RateAndTimeLeftAreThoseOfTheUpdates) {
    ProgressBar bar(100, 200);
    testing::internal::CaptureStderr();

    bar.advance(1, 0.5, 8, 4);  // 8 samples in 4 ms; 99 such updates are left
    bar.erase();

    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "\r\033[K[                    ]   1 %  1/100  loss 0.5  2000 samples/s  ETA 0:00"
              "\r\033[K");
}

TEST(ProgressBarTest, IsDrawnLessOftenThanUpdatesComeIn) {
    ProgressBar bar(1000, 200);
    testing::internal::CaptureStderr();

    for (int update = 1; update <= 1000; ++update)
        bar.advance(update, 0.5, 8, 1);

    const std::string drawn = testing::internal::GetCapturedStderr();
    EXPECT_THAT(drawn, HasSubstr("  1/1000  "));
    EXPECT_LT(std::count(drawn.begin(), drawn.end(), '\r'), 1000);
    bar.erase();
}

TEST(ProgressBarTest, WithoutATerminalNothingIsDrawn) {
    ProgressBar bar(100, 0);
    testing::internal::CaptureStderr();

    bar.advance(1, 0.5, 8, 4);
    bar.erase();

    EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
}

}  // namespace
}  // namespace hetseq
