#include "hetseq/plan/layout/cluster_layouts.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/plan/all_reduce_time.hpp"
#include "hetseq/plan/cluster_file.hpp"
#include "hetseq/plan/layout/layer_times.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Ranks 0 to 3 are fast, on two hosts; 4 is slow. Forward of a layer takes 1 ms, or 4.
std::string unlike_nodes(const std::string& memory, const std::string& job) {
    return R"([device fast]
tflops = 4
update-ms = 8
)" + memory +
           R"([device slow]
tflops = 1
update-ms = 16
[nodes pair]
device = fast
gpus = 2
count = 2
intra-bandwidth-gb = 16
[nodes lone]
device = slow
inter-bandwidth-gb = 1
[links]
intra-bandwidth-gb = 8
inter-latency-us = 100
inter-bandwidth-gb = 2
[model]
backward-fraction = 0.75
[layer stem]
parameters-m = 8
gflop = 4
kept-mib = 3
output-mib = 2
workspace-mib = 1
[layer block]
count = 4
parameters-m = 2
gflop = 4
kept-mib = 6
output-mib = 1
[job]
)" + job;
}

Cluster unlike(const std::string& memory = "",
               const std::string& job = "batch = 64\nmicro-batches = 8, 2\n") {
    Cluster cluster = parse_cluster(unlike_nodes(memory, job), "c.cfg");
    fill_from_layers(cluster);
    return cluster;
}

TEST(ClusterLayoutsTest, RanksAreNumberedNodeByNode) {
    const LayoutProblem problem = layout_problem(unlike());

    EXPECT_THAT(problem.class_of, ElementsAre(0, 0, 0, 0, 1));
    EXPECT_THAT(problem.host_of, ElementsAre(0, 0, 1, 1, 2));
}

TEST(ClusterLayoutsTest, TheChainIsTheDescribedLayers) {
    const Cluster cluster = unlike("memory-mib = 1000\nprocess-mib = 50\n");

    const LayoutProblem problem = layout_problem(cluster);

    ASSERT_EQ(problem.sizes.size(), 2u);
    EXPECT_EQ(problem.sizes[1].micro_batch, 2);
    const ChainProblem& chain = problem.sizes[1].chain;
    EXPECT_THAT(chain.devices[0].forward_ms, ElementsAre(2, 2, 2, 2, 2));
    EXPECT_THAT(chain.devices[1].forward_ms, ElementsAre(8, 8, 8, 8, 8));
    EXPECT_THAT(chain.devices[1].backward_ms, ElementsAre(24, 24, 24, 24, 24));
    EXPECT_THAT(chain.activations_mb, ElementsAre(4, 2, 2, 2, 2));
    EXPECT_EQ(chain.gradients_mb, chain.activations_mb);
    EXPECT_THAT(chain.activations_mb_kept, ElementsAre(6, 12, 12, 12, 12));
    EXPECT_THAT(chain.workspace_mb, ElementsAre(2, 0, 0, 0, 0));
    EXPECT_EQ(chain.devices[0].count, 4u);
    EXPECT_DOUBLE_EQ(chain.devices[0].memory_mb, 900);
    EXPECT_DOUBLE_EQ(chain.devices[0].process_mb, 50);
    EXPECT_GT(chain.devices[1].memory_mb, 1e9) << "not said: enough";
}

// Adam: values, gradients, and two tensors of state.
TEST(ClusterLayoutsTest, AStageHoldsItsOwnParameters) {
    const Cluster cluster = unlike();
    const LayoutProblem problem = layout_problem(cluster);
    constexpr double mib_a_million = 4e6 / bytes_of_mib;

    EXPECT_NEAR(problem.sizes[0].chain.state_mb(0, 2, 0), 4 * 10 * mib_a_million, 1e-9);
    EXPECT_NEAR(problem.sizes[0].chain.state_mb(1, 4, 1), 4 * 6 * mib_a_million, 1e-9);
    EXPECT_NEAR(problem.sharded_state_mb(0, 4), (2 + 2.0 / 4) * 16 * mib_a_million, 1e-9);
    EXPECT_NEAR(problem.gradients_mb(1, 5), 8 * mib_a_million, 1e-9);
    EXPECT_NEAR(problem.optimizer_ms(0, 1, 0), 4, 1e-9);
    EXPECT_NEAR(problem.optimizer_ms(1, 5, 1), 8, 1e-9);
}

// The stem and the head share 4 of their 8 and 5 millions of parameters.
TEST(ClusterLayoutsTest, TiedParametersCountOnceInAStageAndAreSummedBetweenTwo) {
    const std::string head =
        "[layer head]\nparameters-m = 5\ngflop = 4\nkept-mib = 1\noutput-mib = 0\n";
    const std::string tie =
        "[tied words]\nlayers = head stem\nparameters-m = 4\nfilled = 1, 0.25\n";
    const std::string job = "batch = 64\nmicro-batches = 8, 2\n";
    Cluster cluster = parse_cluster(unlike_nodes("", job + head + tie), "c.cfg");
    fill_from_layers(cluster);
    constexpr double mib_a_million = 4e6 / bytes_of_mib;

    const LayoutProblem problem = layout_problem(cluster);

    EXPECT_EQ(cluster.model.parameters, 17'000'000);
    const ChainProblem& chain = problem.sizes[0].chain;
    EXPECT_NEAR(chain.state_mb(0, 6, 0), 4 * 17 * mib_a_million, 1e-9);
    EXPECT_NEAR(chain.state_mb(0, 1, 0) + chain.state_mb(1, 6, 0), 4 * 21 * mib_a_million, 1e-9);
    EXPECT_NEAR(problem.gradients_mb(0, 6), 17 * mib_a_million, 1e-9);
    ASSERT_EQ(chain.tied.size(), 1u);
    EXPECT_THAT(chain.tied[0].units, ElementsAre(5, 0));
    EXPECT_NEAR(chain.tied[0].gradients_mb, 4 * mib_a_million, 1e-9);
    EXPECT_NEAR(chain.tied[0].sent_mb({0, 0, 1}), mib_a_million, 1e-9);
    EXPECT_TRUE(plan_layouts(cluster).front().fits());
}

// Half the bytes of fp32, as with --reduce-precision bf16.
TEST(ClusterLayoutsTest, GradientsHaveTheGivenBytes) {
    Cluster cluster = unlike();
    cluster.model.bytes = 32e6;

    EXPECT_NEAR(layout_problem(cluster).gradients_mb(0, 1), 16e6 / bytes_of_mib, 1e-9);
}

TEST(ClusterLayoutsTest, LinksAreTheSlowerOfTheirNodes) {
    const Cluster cluster = unlike();
    const LayoutProblem problem = layout_problem(cluster);
    const auto bandwidth_gb = [&](int from, int to) {
        return bytes_of_mib / 1e6 / problem.link(from, to).ms_per_mb;
    };

    EXPECT_NEAR(bandwidth_gb(0, 1), 16, 1e-9);
    EXPECT_NEAR(bandwidth_gb(1, 2), 2, 1e-9);
    EXPECT_NEAR(bandwidth_gb(3, 4), 1, 1e-9);
    EXPECT_NEAR(bandwidth_gb(4, 3), 1, 1e-9);
    EXPECT_DOUBLE_EQ(problem.link(1, 2).latency_ms, 0.1);
    EXPECT_DOUBLE_EQ(problem.link(0, 1).latency_ms, 0);
}

// The reference: a description that has no other nodes.
TEST(ClusterLayoutsTest, SumsTakeWhatAClusterOfTheseRanksWould) {
    const Cluster cluster = unlike();
    const LayoutProblem problem = layout_problem(cluster);
    Cluster pairs = cluster;
    pairs.nodes.pop_back();
    Cluster apart = cluster;
    apart.nodes[0].gpus = 1;
    const double mb = 3;

    for (const AllReduceAlgorithm algorithm :
         {AllReduceAlgorithm::ring, AllReduceAlgorithm::tree, AllReduceAlgorithm::mpi}) {
        Cluster other = cluster;
        other.network.algorithm = algorithm;
        const LayoutProblem of_other = layout_problem(other);
        const auto expected = [&](const Cluster& ranks) {
            return all_reduce_ms(algorithm, route_over(ranks), mb * bytes_of_mib);
        };
        EXPECT_DOUBLE_EQ(of_other.all_reduce_ms(std::vector{0, 1, 2, 3, 4}, mb), expected(cluster));
        EXPECT_DOUBLE_EQ(of_other.all_reduce_ms(std::vector{0, 1, 2, 3}, mb), expected(pairs));
        EXPECT_DOUBLE_EQ(of_other.all_reduce_ms(std::vector{1, 3, 4}, mb), expected(apart));
    }
}

TEST(ClusterLayoutsTest, EveryLayoutHasAllLayersAndTheBatch) {
    const std::vector<LayoutPlan> layouts = plan_layouts(unlike());

    ASSERT_GT(layouts.size(), 3u);
    EXPECT_TRUE(layouts.front().fits());
    for (const LayoutPlan& layout : layouts) {
        std::int64_t units = 0;
        for (const WorkerPlan& worker : layout.workers) {
            units += worker.units;
            EXPECT_EQ(worker.stages.front().begin, 0u);
            EXPECT_EQ(worker.stages.back().end, 5u);
        }
        EXPECT_EQ(units, 64) << layout.name;
    }
}

// The model takes 244 MiB, and a fast device may fill 180.
TEST(ClusterLayoutsTest, DevicesThatCannotHoldTheModelArePipelined) {
    const std::vector<LayoutPlan> layouts = plan_layouts(unlike("memory-mib = 200\n"));

    ASSERT_TRUE(layouts.front().fits());
    for (const WorkerPlan& worker : layouts.front().workers)
        if (worker.ranks.front() < 4) {
            EXPECT_GT(worker.ranks.size(), 1u);
        }
    EXPECT_GT(layouts.front().ranks(), 3u);
}

// 1 + 30 layers on 65 ranks: groups of two are 16.
TEST(ClusterLayoutsTest, ManyRanksCutManyLikeLayersInGroups) {
    Cluster cluster = unlike("", "batch = 640\nmicro-batches = 8\n");
    cluster.nodes[0].count = 32;
    cluster.layers[1].count = 30;
    cluster.model.bytes = 4 * 68e6;
    const LayoutProblem problem = layout_problem(cluster);
    const std::vector<LayoutPlan> layouts = plan_layouts(cluster);

    const ChainProblem& chain = problem.sizes[0].chain;
    ASSERT_EQ(chain.units(), 16u);
    EXPECT_DOUBLE_EQ(chain.devices[0].forward_ms[1], 2 * chain.devices[0].forward_ms[0]);
    EXPECT_DOUBLE_EQ(chain.activations_mb_kept[1], 8 * 2 * 6);
    EXPECT_DOUBLE_EQ(chain.activations_mb[1], 8);
    EXPECT_NEAR(problem.gradients_mb(0, 16), 68 * 4e6 / bytes_of_mib, 1e-9);
    std::set<std::size_t> ends;
    for (const LayoutPlan& layout : layouts)
        for (const WorkerPlan& worker : layout.workers)
            for (const ChainStage& stage : worker.stages)
                ends.insert(stage.end);
    EXPECT_GT(ends.size(), 2u);
    EXPECT_EQ(*ends.rbegin(), 31u);
    for (const std::size_t end : ends)
        EXPECT_EQ(end % 2, 1u);
}

// More micro-batches are in flight where more have to be computed, so times may fall between two
// numbers that are simulated. A line through them once fell below 0.
TEST(ClusterLayoutsTest, ManyMicroBatchesTakeAtLeastTheTimeOfTheSlowestStage) {
    for (const std::int64_t batch : {256, 512, 8192}) {
        const Cluster cluster = parse_cluster(
            R"([device fast]
tflops = 1
[nodes fast]
count = 4
[device slow]
tflops = 0.5
[nodes slow]
count = 4
[links]
inter-bandwidth-gb = 0.125
[layer embeddings]
parameters-m = 4.3
gflop = 0.01
kept-mib = 0.5
output-mib = 0.25
[layer layer]
count = 8
parameters-m = 3.1
gflop = 0.8
kept-mib = 3
output-mib = 0.25
[layer head]
parameters-m = 4.3
gflop = 0.5
kept-mib = 1
output-mib = 0
[job]
micro-batches = 2, 4, 8
batch = )" + std::to_string(batch) +
                "\n",
            "c.cfg");
        const double forward_ms = 0.01 + 8 * 0.8 + 0.5;  // of a unit by all at 1 TFLOP/s
        const double all_tflops = 4 * 1 + 4 * 0.5;
        const double bound_ms = 3 * forward_ms / all_tflops * static_cast<double>(batch);

        const std::vector<LayoutPlan> layouts = plan_layouts(cluster);

        ASSERT_FALSE(layouts.empty());
        for (const LayoutPlan& layout : layouts)
            EXPECT_GT(layout.update_ms, 0.999 * bound_ms) << layout.name << ", " << batch;
    }
}

TEST(ClusterLayoutsTest, ADescriptionWithoutLayersHasNoLayouts) {
    EXPECT_TRUE(
        plan_layouts(parse_cluster("[nodes a]\n[device a]\nunit-ms = 1\n", "c.cfg")).empty());
}

TEST(ClusterLayoutsTest, WhatCannotBePlannedIsAnError) {
    const auto complaint = [](const std::string& job, std::int64_t count = 2) -> std::string {
        try {
            Cluster cluster = unlike("", job);
            cluster.nodes[0].count = count;
            layout_problem(cluster);
        } catch (const BadConfig& error) {
            return error.what();
        }
        return "no error";
    };

    EXPECT_EQ(complaint("batch = 64\nmicro-batches = 8, 7\n"), "no error");
    EXPECT_THAT(
        complaint("batch = 60\nmicro-batches = 16, 8\n"),
        HasSubstr("no micro-batch divides the batch of 60 units ('micro-batches' are 16, 8"));
    EXPECT_THAT(complaint("batch = 64\nmicro-batches = 8\n", 1024),
                HasSubstr("the cluster has 2049 ranks, too many to compare layouts (at most 2048"));
    EXPECT_THAT(complaint("batch = 1000000000\nmicro-batches = 8\n"),
                HasSubstr("more than 10^9 ms for the batch"));
}

}  // namespace
}  // namespace hetseq
