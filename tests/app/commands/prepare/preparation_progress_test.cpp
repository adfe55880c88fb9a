#include "app/commands/prepare/preparation_progress.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(PreparationProgressTest, ShowsShareRateAndTheTimeThatIsLeft) {
    EXPECT_EQ(preparation_text(25'000'000, 100'000'000, 10), "25 % of 100 MB  2.5 MB/s  ETA 0:30");
    EXPECT_EQ(preparation_text(100'000'000, 100'000'000, 8),
              "100 % of 100 MB  12.5 MB/s  ETA 0:00");
}

TEST(PreparationProgressTest, ShowsNoRateBeforeAnythingIsDone) {
    EXPECT_EQ(preparation_text(0, 2'000'000, 0.5), "0 % of 2 MB");
    EXPECT_EQ(preparation_text(0, 0, 0), "0 % of 0 MB");
}

}  // namespace
}  // namespace hetseq
