#include "hetseq/plan/cluster_fit.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/plan/cluster_plan.hpp"

#include "plan/described_cluster.hpp"

namespace hetseq {
namespace {

constexpr const char* job = "[job]\nunits-per-rank = 100\n[model]\nparameter-bytes = 1e8\n";

// The model's own time for `nodes` nodes with these numbers.
double simulated_ms(int nodes, double unit_ms, double bandwidth_gb) {
    Cluster cluster = like_nodes(nodes, job);
    cluster.devices[0].cost.unit_ms = unit_ms;
    cluster.network.inter.bandwidth_gb = bandwidth_gb;
    return plan_update(cluster).times.step_ms;
}

std::string row(const std::string& use, int nodes, double ms) {
    return "row = " + use + " " + std::to_string(ms) + " n=" + std::to_string(nodes) + "\n";
}

TEST(ClusterFitTest, FindsTheNumbersThatMadeTheRows) {
    const Cluster cluster = like_nodes(
        1,
        job +
            std::string("[links]\ninter-bandwidth-gb = 1\n[fit]\n"
                        "parameters = compute, inter-bandwidth-gb\n") +
            row("fit", 1, simulated_ms(1, 2.5, 0.3)) + row("fit", 4, simulated_ms(4, 2.5, 0.3)) +
            row("predict", 8, simulated_ms(8, 2.5, 0.3)));

    const ClusterFit fit = fit_cluster(cluster);

    ASSERT_EQ(fit.numbers.size(), 2u);
    EXPECT_NEAR(fit.numbers[0].fitted, 2.5, 1e-4);
    EXPECT_NEAR(fit.numbers[1].fitted, 0.3, 1e-4);
    EXPECT_GT(fit.numbers[1].effect, 0.01);
    ASSERT_EQ(fit.rows.size(), 3u);
    EXPECT_NEAR(fit.rows[2].residual, 0, 1e-4);
    EXPECT_EQ(fit.rows[2].nodes, "n x 8");
    EXPECT_EQ(fit.rows[2].batch, 800);
    EXPECT_NEAR(fit.predicted_error.value(), 0, 1e-4);
}

TEST(ClusterFitTest, SaysWhereRowsDetermineNothing) {
    const Cluster cluster =
        like_nodes(1,
                   job + std::string("[links]\ninter-bandwidth-gb = 1\n[fit]\n"
                                     "parameters = inter-bandwidth-gb\nrow = fit 100 n=1\n"));

    const ClusterFit fit = fit_cluster(cluster);

    EXPECT_DOUBLE_EQ(fit.numbers[0].effect, 0);
    EXPECT_FALSE(fit.predicted_error);
}

TEST(ClusterFitTest, ANumberWithoutAFirstGuessIsAnError) {
    EXPECT_THROW(
        fit_cluster(like_nodes(
            1, job + std::string("[fit]\nparameters = inter-bandwidth-gb\nrow = fit 9 n=1\n"))),
        BadConfig);
    EXPECT_THROW(fit_cluster(like_nodes(
                     1, job + std::string("[fit]\nparameters = spread\nrow = fit 9 n=1\n"))),
                 BadConfig);
}

}  // namespace
}  // namespace hetseq
