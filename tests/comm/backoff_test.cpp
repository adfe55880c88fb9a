#include "comm/backoff.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

using std::chrono::microseconds;

TEST(Backoff, SleepsGrowInLongWaitsAlone) {
    constexpr Backoff::Options options;
    EXPECT_EQ(Backoff::longest_sleep_after(microseconds{100}, options), microseconds{200});
    EXPECT_EQ(Backoff::longest_sleep_after(microseconds{12'800}, options), microseconds{200});
    EXPECT_EQ(Backoff::longest_sleep_after(microseconds{64'000}, options), microseconds{1'000});
    EXPECT_EQ(Backoff::longest_sleep_after(microseconds{60'000'000}, options), microseconds{2'000});
    constexpr Backoff::Options few{.longest_sleep = microseconds{500},
                                   .longest_in_long_waits = microseconds{8'000},
                                   .part_of_wait = 16};
    EXPECT_EQ(Backoff::longest_sleep_after(microseconds{100}, few), microseconds{500});
    EXPECT_EQ(Backoff::longest_sleep_after(microseconds{64'000}, few), microseconds{4'000});
    EXPECT_EQ(Backoff::longest_sleep_after(microseconds{60'000'000}, few), microseconds{8'000});
}

TEST(Backoff, TestsFollowOneAnotherAtFirst) {
    Backoff backoff{{.eager = std::chrono::seconds{3600}}};
    for (int i = 0; i < 100; ++i) {
        backoff.pause();
        ASSERT_FALSE(backoff.slept());
    }
}

TEST(Backoff, SleepsOnceTheEagerTimeIsOverAndAnewAfterAReset) {
    Backoff backoff{{.eager = microseconds{0}}};
    std::this_thread::sleep_for(microseconds{10});
    backoff.pause();
    EXPECT_TRUE(backoff.slept());
    backoff.reset();
    std::this_thread::sleep_for(microseconds{10});
    backoff.pause();
    EXPECT_TRUE(backoff.slept());
}

}  // namespace
}  // namespace hetseq
