#include "hetseq/plan/all_reduce_time.hpp"

#include <gtest/gtest.h>

#include "plan/described_cluster.hpp"

namespace hetseq {
namespace {

constexpr auto ring = AllReduceAlgorithm::ring;
constexpr auto tree = AllReduceAlgorithm::tree;

TEST(AllReduceTimeTest, ASingleRankReducesNothing) {
    const Route route = route_over(like_nodes(1, "[links]\ninter-latency-us = 50\n"));

    EXPECT_DOUBLE_EQ(all_reduce_ms(ring, route, 1e9), 0);
    EXPECT_DOUBLE_EQ(all_reduce_ms(tree, route, 1e9), 0);
}

// 2 (n - 1) / n bytes / bandwidth + 2 (n - 1) latency
TEST(AllReduceTimeTest, RingFollowsTheFormula) {
    for (int n : {2, 3, 16, 1000}) {
        const Route route =
            route_over(like_nodes(n, "[links]\ninter-latency-us = 50\ninter-bandwidth-gb = 2\n"));

        const double expected = 2.0 * (n - 1) / n * 4e8 / 2e9 * 1e3 + 2.0 * (n - 1) * 0.05;
        EXPECT_NEAR(all_reduce_ms(ring, route, 4e8), expected, 1e-9 * expected) << n;
    }
}

// 2 bytes / bandwidth + 2 ceil(log2 n) latency
TEST(AllReduceTimeTest, TreeFollowsTheFormula) {
    for (const auto& [n, levels] : {std::pair{2, 1}, {3, 2}, {16, 4}, {17, 5}}) {
        const Route route =
            route_over(like_nodes(n, "[links]\ninter-latency-us = 50\ninter-bandwidth-gb = 2\n"));

        EXPECT_NEAR(all_reduce_ms(tree, route, 4e8), 400 + 2 * levels * 0.05, 1e-9) << n;
    }
}

TEST(AllReduceTimeTest, TheSlowestLinkInUseCounts) {
    const char* links =
        "intra-bandwidth-gb = 10\ninter-bandwidth-gb = 1\n[nodes m]\ndevice = d\ngpus = 4\n"
        "inter-bandwidth-gb = 0.5\ncount = ";
    const auto route = [&](int n, int m) {
        return route_over(like_nodes(n, std::string("[links]\n") + links + std::to_string(m)));
    };

    EXPECT_NEAR(all_reduce_ms(ring, route(0, 1), 4e8), 6.0 / 4 * 40, 1e-9) << "within a node";
    EXPECT_NEAR(all_reduce_ms(ring, route(2, 0), 4e8), 400, 1e-9) << "the usual link";
    EXPECT_NEAR(all_reduce_ms(ring, route(4, 1), 4e8), 14.0 / 8 * 800, 1e-9) << "the slow node's";
}

Route route_of(int hosts, int ranks_on_each) {
    return route_over(like_nodes(hosts,
                                 "gpus = " + std::to_string(ranks_on_each) +
                                     "\n[links]\nintra-latency-us = 2\nintra-bandwidth-gb = 8\n"
                                     "inter-latency-us = 50\ninter-bandwidth-gb = 1.25\n"));
}

TEST(AllReduceTimeTest, MpiSumsAsTheCommunicatorDoes) {
    constexpr double bucket = 8 << 20;
    const auto steps = [](const Route& route, double bytes) {
        const AllReduceSteps how = all_reduce_steps(AllReduceAlgorithm::mpi, route, bytes);
        return how.scheme + " " + std::to_string(how.steps);
    };

    EXPECT_EQ(steps(route_of(8, 8), bucket), "direct 2");
    EXPECT_EQ(steps(route_of(8, 8), 3 * bucket), "ring 126");
    EXPECT_EQ(steps(route_of(32, 8), bucket), "hierarchical 12");
    EXPECT_EQ(steps(route_of(128, 8), bucket), "hierarchical 16");
    EXPECT_EQ(steps(route_of(100, 1), bucket), "hierarchical 14");
    EXPECT_EQ(steps(route_of(1, 80), bucket), "hierarchical 2");
    EXPECT_EQ(steps(route_of(128, 8), 1000), "doubling 10");
    EXPECT_EQ(steps(route_of(3, 1), 1000), "doubling 3");
}

// Within nodes 2 (7/8 S / 8 GB/s + 2 us), between them 2 (127/128 S / 1.25 GB/s + 7 * 50 us).
TEST(AllReduceTimeTest, HierarchicalFollowsTheFormula) {
    constexpr double bytes = 8 << 20;

    const double ms = all_reduce_ms(AllReduceAlgorithm::mpi, route_of(128, 8), bytes);

    EXPECT_NEAR(ms, 2 * (bytes * 7 / 8 / 8e6 + 0.002 + bytes * 127 / 128 / 1.25e6 + 0.35), 1e-9);
}

}  // namespace
}  // namespace hetseq
