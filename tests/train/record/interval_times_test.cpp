#include "hetseq/train/record/interval_times.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"

#include "test_world.hpp"

namespace hetseq {
namespace {

TEST(IntervalTimesTest, MeansAreOfTheUpdatesThatHaveTheTime) {
    const HostComm world = test::world();
    const double own = world.rank();
    IntervalTimes times;

    times.add({{RankTime::data, own}, {RankTime::wait, 8}});
    times.add({{RankTime::data, own + 2}});
    const auto first = times.take(world);
    times.add({{RankTime::data, 5}});
    const auto second = times.take(world);

    ASSERT_EQ(first[RankTime::data].size(), static_cast<std::size_t>(world.size()));
    for (int r = 0; r < world.size(); ++r)
        EXPECT_EQ(first[RankTime::data][r], r + 1);
    EXPECT_EQ(first[RankTime::wait], std::vector<double>(world.size(), 8));
    EXPECT_TRUE(first[RankTime::reduce].empty());
    EXPECT_EQ(second[RankTime::data], std::vector<double>(world.size(), 5));
    EXPECT_TRUE(second[RankTime::wait].empty());
}

TEST(IntervalTimesTest, ARankWithoutTheTimeHasNoNumber) {
    const HostComm world = test::world();
    IntervalTimes times;

    if (world.rank() == 0)
        times.add(RankTime::optimizer, 3);
    const auto means = times.take(world)[RankTime::optimizer];

    ASSERT_EQ(means.size(), static_cast<std::size_t>(world.size()));
    EXPECT_EQ(means[0], 3);
    for (int r = 1; r < world.size(); ++r)
        EXPECT_TRUE(std::isnan(means[r]));
}

}  // namespace
}  // namespace hetseq
