#include "hetseq/session/threads.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/topology.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

TEST(ChooseThreadsTest, UsesTheRanksOwnCores) {
    const ThreadChoice choice = choose_threads({.cores = 8, .own_cores = 4, .host_cores = 8}, 2, 0);

    EXPECT_EQ(choice.threads, 4);
    EXPECT_EQ(choice.warning, "");
}

TEST(ChooseThreadsTest, WarnsARankBoundToFewerCoresThanItsPart) {
    const ThreadChoice choice =
        choose_threads({.cores = 1, .own_cores = 1, .host_cores = 16}, 2, 0);

    EXPECT_EQ(choice.threads, 1);
    EXPECT_THAT(choice.warning, testing::HasSubstr("bound to 1 of the 8 cores"));
}

TEST(ChooseThreadsTest, DoesWhatIsAskedAndWarnsOfTooManyThreads) {
    const ThreadChoice choice = choose_threads({.cores = 2, .own_cores = 2, .host_cores = 2}, 1, 6);

    EXPECT_EQ(choice.threads, 6);
    EXPECT_THAT(choice.warning, testing::HasSubstr("6 threads on 2 core(s)"));
}

TEST(ChooseThreadsTest, RefusesWhatWouldTakeMinutesToStart) {
    const RankInfo rank{.cores = 2, .own_cores = 2, .host_cores = 2};

    EXPECT_EQ(choose_threads(rank, 1, 1024).threads, 1024);
    EXPECT_THROW(choose_threads(rank, 1, 1025), BadConfig);
}

}  // namespace
}  // namespace hetseq
