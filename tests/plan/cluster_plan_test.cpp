#include "hetseq/plan/cluster_plan.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "plan/described_cluster.hpp"

namespace hetseq {
namespace {

// One fast node and `slow` ones at a quarter of its speed.
Cluster fast_and_slow(int slow, const std::string& more) {
    return parse_cluster(
        "[device fast]\nunit-ms = 1\n[device slow]\nunit-ms = 4\n[nodes fast]\n[nodes slow]\ncount = " +
            std::to_string(slow) + "\n" + more,
        "test.cfg");
}

TEST(ClusterPlanTest, SharesFollowSpeed) {
    const ClusterPlan plan = plan_cluster(fast_and_slow(1, "[job]\nbatch = 100\n"));

    EXPECT_EQ(plan.classes[0].units, 80);
    EXPECT_DOUBLE_EQ(plan.classes[1].share, 0.2);
    EXPECT_NEAR(plan.update.times.step_ms, 80, 1e-9);
    EXPECT_NEAR(plan.update.efficiency, 1, 1e-9);
    EXPECT_NEAR(plan.update.rate, 1250, 1e-6);
    EXPECT_NEAR(plan.classes[0].idle_ms, 0, 1e-9);
}

TEST(ClusterPlanTest, AnEqualCutLetsTheFastOneIdle) {
    const ClusterPlan plan =
        plan_cluster(fast_and_slow(1, "[job]\nbatch = 100\nbalance = equal\n"));

    EXPECT_NEAR(plan.update.times.step_ms, 200, 1e-9);
    EXPECT_NEAR(plan.classes[0].idle_ms, 150, 1e-9);
    EXPECT_NEAR(plan.update.efficiency, 0.4, 1e-9);
}

TEST(ClusterPlanTest, ADeclaredCutFollowsMicroBatches) {
    Cluster cluster = fast_and_slow(1, "[job]\nbatch = 100\nbalance = declared\n");
    cluster.devices[0].cost.micro_batch = 30;
    cluster.devices[1].cost.micro_batch = 10;

    const ClusterPlan plan = plan_cluster(cluster);

    EXPECT_EQ(plan.classes[0].units, 75);
    EXPECT_EQ(plan.classes[1].units, 25);
}

TEST(ClusterPlanTest, OneMoreNodeGainsItsRate) {
    const ClusterPlan plan = plan_cluster(fast_and_slow(1, "[job]\nbatch = 3600000\n"));

    // 2,880 s with rates 1 + 1/4; 1,600 s with 2 + 1/4; 2,400 s with 1 + 2/4.
    EXPECT_NEAR(plan.classes[0].one_more.value().step_ms, 1.6e6, 1e-3);
    EXPECT_NEAR(plan.classes[1].one_more.value().step_ms, 2.4e6, 1e-3);
    EXPECT_TRUE(plan.classes[0].still_pays) << "nothing is lost to communication";
}

TEST(ClusterPlanTest, SlowNodesStopPayingWhereTheirLinkCostsMore) {
    // A ring over 1 + k nodes takes 2 k ms, so that 40000 / (1 + k / 4) + 2 k is least, by
    // calculus, at k = 4 (sqrt(5000) - 1) = 278.8 slow nodes.
    const Cluster cluster =
        fast_and_slow(100,
                      "[job]\nbatch = 40000\n[links]\ninter-latency-us = 1000\n"
                      "[model]\nparameter-bytes = 1000\nbackward-fraction = 0\n");

    const NodeClassPlan slow = plan_cluster(cluster).classes[1];

    EXPECT_FALSE(slow.still_pays);
    // Flat at the top, and whole units take a slow node 4 ms each, 0.7 % of the step.
    EXPECT_NEAR(static_cast<double>(slow.best_nodes), 278.8, 45);
    const NodeCount& most = slow.tried.back();
    EXPECT_EQ(most.nodes, 400);
    EXPECT_LT(most.rate,
              plan_update([&] {
                  Cluster best = cluster;
                  best.nodes[1].count = slow.best_nodes;
                  return best;
              }())
                  .rate);
}

TEST(ClusterPlanTest, ABatchTooLargeIsAnError) {
    Cluster cluster = like_nodes(2, "[job]\nbatch = 100\n");
    cluster.devices[0].cost.max_units = 49;

    EXPECT_THROW(plan_update(cluster), BadConfig);
    cluster.devices[0].cost.max_units = 50;
    EXPECT_NEAR(plan_cluster(cluster).update.times.step_ms, 50, 1e-9);
}

TEST(ClusterPlanTest, SixteenThousandRanksArePlanned) {
    const Cluster cluster = parse_cluster(
        "[device a]\nstart-ms = 2\nmicro-batch-ms = 3\nunit-ms = 1\nmicro-batch = 32\n"
        "[device b]\nstart-ms = 3\nmicro-batch-ms = 3\nunit-ms = 3.3\nmicro-batch = 16\n"
        "[nodes a]\ngpus = 4\ncount = 2048\n[nodes b]\ngpus = 4\ncount = 2048\n"
        "[links]\nintra-bandwidth-gb = 10\ninter-latency-us = 5\ninter-bandwidth-gb = 12\n"
        "[model]\nparameter-bytes = 4e8\n[job]\nbatch = 1000000\nspread = 0.03\n",
        "test.cfg");

    const ClusterPlan plan = plan_cluster(cluster);

    EXPECT_EQ(plan.update.ranks, 16384);
    EXPECT_EQ(plan.classes[0].units + plan.classes[1].units, 1000000);
    EXPECT_FALSE(plan.classes[0].one_more);
    EXPECT_GT(plan.update.times.step_ms, plan.update.bound_ms);
}

}  // namespace
}  // namespace hetseq
