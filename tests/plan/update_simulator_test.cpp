#include "hetseq/plan/update_simulator.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "plan/described_cluster.hpp"

namespace hetseq {
namespace {

UpdateTimes simulate(const Cluster& cluster, const std::vector<std::int64_t>& allocation) {
    return simulate_update(cluster, group_ranks(cluster, allocation));
}

// 8 buckets of 1 MiB over links of 1 MiB a millisecond: with two ranks each takes 1 ms.
std::string eight_buckets(double backward_fraction) {
    return "[links]\ninter-bandwidth-gb = 1.048576\n[model]\nparameter-bytes = 8388608\n"
           "bucket-mib = 1\nbackward-fraction = " +
           std::to_string(backward_fraction) + "\n";
}

TEST(UpdateSimulatorTest, ASingleRankComputesOnly) {
    const UpdateTimes times = simulate(like_nodes(1, eight_buckets(0.5)), {100});

    EXPECT_DOUBLE_EQ(times.step_ms, 100);
    EXPECT_DOUBLE_EQ(times.exposed_ms, 0);
    EXPECT_DOUBLE_EQ(times.reduce_ms, 0);
}

TEST(UpdateSimulatorTest, WithoutOverlapCommunicationFollows) {
    const UpdateTimes times = simulate(like_nodes(2, eight_buckets(0)), {100, 100});

    EXPECT_NEAR(times.step_ms, 100 + 8, 1e-9);
    EXPECT_NEAR(times.exposed_ms, 8, 1e-9);
}

TEST(UpdateSimulatorTest, WithFullOverlapTheLastBucketIsLeft) {
    // Buckets come every 50 / 8 ms and take 1 ms.
    const UpdateTimes times = simulate(like_nodes(2, eight_buckets(0.5)), {100, 100});

    EXPECT_NEAR(times.step_ms, 100 + 1, 1e-9);
    EXPECT_NEAR(times.reduce_ms, 8, 1e-9);
}

TEST(UpdateSimulatorTest, BucketsWaitForTheirPredecessors) {
    // Backward of 4 ms: a bucket comes every 0.5 ms and takes 1 ms, so the first starts at 96.5 and
    // the last ends 8 ms later.
    const UpdateTimes times = simulate(like_nodes(2, eight_buckets(0.04)), {100, 100});

    EXPECT_NEAR(times.step_ms, 96.5 + 8, 1e-9);
}

TEST(UpdateSimulatorTest, OnlyTheLastMicroBatchOverlaps) {
    Cluster cluster = like_nodes(2, eight_buckets(0.4));
    cluster.devices[0].cost.micro_batch = 10;

    // Backward is 0.4 of a tenth.
    EXPECT_NEAR(simulate(cluster, {100, 100}).step_ms, 96.5 + 8, 1e-9);
}

TEST(UpdateSimulatorTest, TheSlowestRankHoldsBucketsBack) {
    const UpdateTimes times = simulate(like_nodes(3, eight_buckets(0)), {10, 100, 0});

    // Three ranks: 2 * 2 / 3 ms a bucket.
    EXPECT_NEAR(times.step_ms, 100 + 8 * 4.0 / 3, 1e-9);
    EXPECT_NEAR(times.compute_ms, 100, 1e-9);
}

TEST(UpdateSimulatorTest, FixedCostsAddUp) {
    Cluster cluster = like_nodes(2, "[links]\ninter-update-ms = 5\n");
    cluster.devices[0].update_ms = 3;

    EXPECT_NEAR(simulate(cluster, {100, 100}).step_ms, 108, 1e-9);
    cluster.nodes[0].count = 1;
    EXPECT_NEAR(simulate(cluster, {100}).step_ms, 103, 1e-9) << "a single node";
}

TEST(UpdateSimulatorTest, SpreadDelaysTheSlowest) {
    const UpdateTimes times = simulate(like_nodes(2, "[job]\nspread = 0.2\n"), {100, 100});

    // Two like ranks: slowest_rank_test.cpp
    EXPECT_NEAR(times.step_ms, 100 * (1 + std::erf(std::sqrt(std::log1p(0.04)) / 2)), 1e-2);
    EXPECT_NEAR(times.spread_ms, times.step_ms - 100, 1e-9);
}

TEST(UpdateSimulatorTest, RanksAreGroupedByShare) {
    const auto groups = group_ranks(like_nodes(5, ""), std::vector<std::int64_t>{3, 2, 3, 2, 3});

    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].ranks, 2);
    EXPECT_EQ(groups[1].ranks, 3);
    EXPECT_DOUBLE_EQ(groups[1].compute_ms, 3);
}

}  // namespace
}  // namespace hetseq
