#include "hetseq/plan/measured_run.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/plan/cluster_file.hpp"
#include "hetseq/plan/cluster_plan.hpp"
#include "hetseq/plan/layout/cluster_layouts.hpp"
#include "hetseq/plan/layout/layer_times.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

// Two hosts; 10 ms of an update are neither compute nor wait.
MeasuredRun two_hosts() {
    return {.name = "RUN",
            .ranks = {{"h1", "Tesla V100", 24, 96, 4, 8}, {"h2", "Tesla P100", 8, 80, 20, 8}},
            .step_ms = 110,
            .model_bytes = 8e6,
            .bucket_mib = 1,
            .batch = 32};
}

TEST(MeasuredRunTest, FillsDevicesBatchAndModel) {
    Cluster cluster = parse_cluster("[nodes h1]\n[nodes p100]\ncount = 2\n", "c.cfg");

    fill_from_runs(cluster, std::vector{two_hosts()});

    EXPECT_NO_THROW(require_complete(cluster));
    EXPECT_NEAR(cluster.devices[0].cost.unit_ms, 4, 1e-9) << "by host";
    EXPECT_NEAR(cluster.devices[1].cost.unit_ms, 10, 1e-9) << "by device";
    EXPECT_EQ(cluster.devices[1].cost.micro_batch, 8);
    EXPECT_NEAR(cluster.devices[0].update_ms, 10, 1e-9);
    EXPECT_EQ(cluster.batch(), 32);
    EXPECT_DOUBLE_EQ(cluster.model.bytes, 8e6);
    EXPECT_DOUBLE_EQ(cluster.model.bucket_mib, 1);
}

TEST(MeasuredRunTest, AHostIsNoPartOfADevicesName) {
    MeasuredRun run = two_hosts();
    run.ranks = {{"h1", "NVIDIA H100", 24, 96, 4, 8}, {"h10", "NVIDIA H100", 8, 80, 20, 8}};
    Cluster cluster = parse_cluster("[nodes h1]\n[nodes h100]\n", "c.cfg");

    fill_from_runs(cluster, std::vector{run});

    EXPECT_NEAR(cluster.devices[0].cost.unit_ms, 4, 1e-9);
    EXPECT_NEAR(cluster.devices[1].cost.time_ms(24), 96, 1) << "by device";
    Cluster other = parse_cluster("[nodes h10]\n[nodes h]\n", "c.cfg");
    EXPECT_THROW(fill_from_runs(other, std::vector{run}), Error);
}

MeasuredRun with_chain(MeasuredRun run) {
    const auto layer = [](const char* kind, double parameters) {
        return MeasuredChain::Unit{kind, parameters, 0.5, 0.25, 0.125};
    };
    run.chain = MeasuredChain{
        .micro_batches = {8, 4},
        .units = {layer("front", 10), layer("layer", 20), layer("layer", 20), layer("head", 5)},
        .devices = {{"Tesla V100", {"h1"}, 0.5, {1, 2, 4, 3}},
                    {"Tesla P100", {"h2"}, 1, {2, 4, 4, 6}},
                    {"Tesla P100", {"h3"}, 1, {2, 4, 4, 7}},
                    {"Tesla P100", {"h4"}, 1, {2, 4, 4, 8}}}};
    return run;
}

TEST(MeasuredRunTest, LayersAreTheUnitsThatWereMeasured) {
    Cluster cluster = parse_cluster("[nodes h1]\n[nodes p100]\ncount = 3\n", "c.cfg");

    const auto notes = fill_from_runs(cluster, std::vector{with_chain(two_hosts())});

    EXPECT_THAT(notes,
                testing::Contains(testing::HasSubstr("layers: 4 units of the model in RUN")));
    ASSERT_EQ(cluster.layers.size(), 3U);
    EXPECT_EQ(cluster.layers[1].name, "layer");
    EXPECT_EQ(cluster.layers[1].count, 2);
    EXPECT_EQ(cluster.layers[1].parameters, 20);
    EXPECT_EQ(cluster.layers[1].kept_mib, 0.5);
    EXPECT_DOUBLE_EQ(layer_ms(cluster, cluster.layers[1], cluster.devices[0], 4), 0.5 + 4 * 3);
    EXPECT_DOUBLE_EQ(layer_ms(cluster, cluster.layers[2], cluster.devices[1], 2), 1 + 2 * 7);
    fill_from_layers(cluster);
    EXPECT_EQ(cluster.model.parameters, 55);
    const std::vector<LayoutPlan> layouts = plan_layouts(cluster);
    EXPECT_GT(layouts.size(), 3U);
    EXPECT_TRUE(layouts.front().fits());
}

TEST(MeasuredRunTest, UnitsThatShareParametersAreLayersOfTheirOwn) {
    MeasuredRun run = with_chain(two_hosts());
    run.chain->tied = {{.units = {0, 3}, .parameters = 4, .filled = {0.25, 1}},
                       {.units = {1, 2}, .parameters = 20, .filled = {1, 1}}};
    Cluster cluster = parse_cluster("[nodes h1]\n[nodes p100]\ncount = 3\n", "c.cfg");

    fill_from_runs(cluster, std::vector{run});
    fill_from_layers(cluster);

    ASSERT_EQ(cluster.layers.size(), 4U);
    EXPECT_EQ(cluster.layers[2].name, "layer 2");
    ASSERT_EQ(cluster.tied.size(), 2U);
    EXPECT_THAT(cluster.tied[0].layers, testing::ElementsAre(0, 3));
    EXPECT_THAT(cluster.tied[0].filled, testing::ElementsAre(0.25, 1));
    EXPECT_THAT(cluster.tied[1].layers, testing::ElementsAre(1, 2));
    EXPECT_EQ(cluster.model.parameters, 55 - 4 - 20);
    EXPECT_TRUE(plan_layouts(cluster).front().fits());
}

TEST(MeasuredRunTest, StagesOfAPipelineTellOfLayersAlone) {
    MeasuredRun run = with_chain(two_hosts());
    run.is_pipelined = true;
    run.ranks[1].units = 0;  // the share stands at the first stage
    for (const char* described :
         {"[nodes h2]\ncount = 3\n", "[device other]\nmeasured = h2\n[nodes other]\ncount = 3\n"}) {
        Cluster cluster = parse_cluster(described, "c.cfg");

        fill_from_runs(cluster, std::vector{run});
        fill_from_layers(cluster);

        EXPECT_NO_THROW(require_complete(cluster)) << described;
        EXPECT_DOUBLE_EQ(cluster.devices[0].cost.unit_ms, 2 + 4 + 4 + 6);
        EXPECT_DOUBLE_EQ(cluster.devices[0].cost.micro_batch_ms, 4);
    }
    run.chain->counts_tokens = true;
    Cluster other = parse_cluster("[nodes h2]\n", "c.cfg");
    try {
        fill_from_runs(other, std::vector{run});
        FAIL() << "times of stages are taken";
    } catch (const BadConfig& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("layers are taken only for samples of one"));
    }
    run.chain.reset();
    Cluster again = parse_cluster("[nodes h2]\n", "c.cfg");
    try {
        fill_from_runs(again, std::vector{run});
        FAIL() << "times of stages are taken";
    } catch (const BadConfig& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("whose cut was given"));
    }
}

TEST(MeasuredRunTest, DescribedLayersSayHowLargeTheModelIs) {
    Cluster cluster = parse_cluster(
        "[layer a]\nparameters-m = 3\ngflop = 1\nkept-mib = 1\n"
        "output-mib = 0\n[device h1]\ntflops = 1\n[nodes h1]\n[job]\nmicro-batches = 8\n",
        "c.cfg");

    fill_from_runs(cluster, std::vector{two_hosts()});
    fill_from_layers(cluster);

    EXPECT_EQ(cluster.model.bytes, 4 * 3e6);
    Cluster plain = parse_cluster("[device h1]\n[nodes h1]\n", "c.cfg");
    fill_from_runs(plain, std::vector{two_hosts()});
    EXPECT_LT(cluster.network.inter.bandwidth_gb, 1e4) << "the run has links";
    EXPECT_DOUBLE_EQ(cluster.network.inter.bandwidth_gb, plain.network.inter.bandwidth_gb);
}

TEST(MeasuredRunTest, LayersAreNotTakenWhereTheyCannotBeCompared) {
    const std::vector run{with_chain(two_hosts())};
    const auto layers_for = [&](const std::string& text) {
        Cluster cluster = parse_cluster(text, "c.cfg");
        fill_from_runs(cluster, run);
        return cluster.layers.size();
    };
    EXPECT_EQ(layers_for("[nodes h1]\n"), 3U);
    EXPECT_EQ(layers_for("[nodes h1]\ncount = 4000\n"), 0U) << "too many ranks";
    EXPECT_EQ(layers_for("[nodes h1]\n[job]\nbatch = 31\n"), 0U) << "no micro-batch divides it";
    EXPECT_EQ(layers_for("[device a100]\nunit-ms = 1\n[nodes a100]\n"), 0U) << "never measured";
}

TEST(MeasuredRunTest, RunsOfUnlikeModelsAreNotTakenTogether) {
    const MeasuredRun one = two_hosts();
    MeasuredRun other = one;
    other.name = "OTHER";
    other.model_bytes = 1.1 * one.model_bytes;
    Cluster cluster = parse_cluster("[nodes h1]\n", "c.cfg");

    EXPECT_NO_THROW(fill_from_runs(cluster, std::vector{one, one}));
    EXPECT_THROW(fill_from_runs(cluster, std::vector{one, other}), BadConfig);
}

TEST(MeasuredRunTest, WhatIsDescribedStays) {
    Cluster cluster = parse_cluster("[device h1]\nupdate-ms = 3\n[nodes h1]\n", "c.cfg");

    fill_from_runs(cluster, std::vector{two_hosts()});

    EXPECT_EQ(cluster.devices[0].update_ms, 3);
    EXPECT_TRUE(cluster.devices[0].has_times);
}

TEST(MeasuredRunTest, TheRunItselfIsPredictedWithItsStepTime) {
    Cluster cluster = parse_cluster("[nodes h1]\n[nodes h2]\n[job]\nbatch = 32\n", "c.cfg");
    MeasuredRun run = two_hosts();
    run.ranks = {{"h1", "a", 24, 96, 4, 8}, {"h2", "b", 8, 96, 4, 8}};

    fill_from_runs(cluster, std::vector{run});

    EXPECT_NEAR(plan_update(cluster).times.step_ms, 110, 0.01);
}

TEST(MeasuredRunTest, WaitingOutsideReductionsIsNoWork) {
    Cluster cluster = parse_cluster("[nodes h1]\n[nodes h2]\n[job]\nbatch = 32\n", "c.cfg");
    MeasuredRun run = two_hosts();
    run.ranks = {{"h1", "a", 24, 96, 4, 8}, {"h2", "b", 8, 96, 14, 8}};

    fill_from_runs(cluster, std::vector{run});

    EXPECT_NEAR(plan_update(cluster).times.step_ms, 110, 0.01);
    EXPECT_DOUBLE_EQ(cluster.devices[0].update_ms, 0);
}

TEST(MeasuredRunTest, TwoRunsGiveALine) {
    Cluster cluster = parse_cluster("[nodes h1]\n[job]\nbatch = 32\n", "c.cfg");
    MeasuredRun small = two_hosts();
    small.ranks = {{"h1", "a", 8, 40, 0, 64}};
    MeasuredRun large = small;
    large.ranks[0].units = 24;
    large.ranks[0].compute_ms = 88;

    fill_from_runs(cluster, std::vector{small, large});

    EXPECT_NEAR(cluster.devices[0].cost.time_ms(8), 40, 1e-6);
    EXPECT_NEAR(cluster.devices[0].cost.time_ms(24), 88, 1e-6);
    EXPECT_NEAR(cluster.devices[0].cost.time_ms(32), 112, 1e-6);
}

TEST(MeasuredRunTest, ARunThatFollowedItsCostsGivesThem) {
    Cluster cluster = parse_cluster(
        "[device v100]\nmicro-batch = 4\n[nodes v100]\n[nodes h2]\n"
        "[job]\nbatch = 32\n",
        "c.cfg");
    MeasuredRun run = two_hosts();
    for (const double unit_ms : {3, 5, 4})
        run.ranks.push_back(
            {"h1", "Tesla V100", 24, 96, 4, 8, StepCost{.unit_ms = unit_ms, .micro_batch = 8}});
    run.ranks[1].cost =
        StepCost{.micro_batch = 8, .scale = 2, .table = StepTable({{0, 1}, {4, 3}, {8, 9}})};

    fill_from_runs(cluster, std::vector{run});

    EXPECT_DOUBLE_EQ(cluster.devices[0].cost.unit_ms, 4) << "of median rate";
    EXPECT_EQ(cluster.devices[0].cost.micro_batch, 4) << "as described";
    EXPECT_DOUBLE_EQ(cluster.devices[1].cost.time_ms(4), 6);
    EXPECT_DOUBLE_EQ(cluster.devices[1].cost.fixed_ms(), 0);
}

TEST(MeasuredRunTest, ACostMustBeOfWorkAndFitTheDescription) {
    DeviceClass device{.name = "a", .cost = {.micro_batch = 4}};
    const StepCost table{.micro_batch = 8, .table = StepTable({{0, 1}, {4, 3}, {8, 9}})};

    EXPECT_THROW(take_cost(device, {.unit_ms = 0, .micro_batch = 8}, "c.json"), BadData);
    EXPECT_THROW(take_cost(device, {.micro_batch = 0}, "c.json"), BadData);
    EXPECT_THROW(take_cost(device, table, "c.json"), BadConfig);
    device.cost.micro_batch = 1000;
    take_cost(device, table, "c.json");
    EXPECT_EQ(device.cost.micro_batch, 8);
}

TEST(MeasuredRunTest, DescribedNumbersStay) {
    Cluster cluster = parse_cluster(
        "[device h1]\nunit-ms = 1\n[nodes h1]\n[links]\ninter-bandwidth-gb = 3\n"
        "[model]\nparameter-bytes = 5\nbucket-mib = 2\n[job]\nbatch = 7\n",
        "c.cfg");

    EXPECT_TRUE(fill_from_runs(cluster, std::vector{two_hosts()}).empty());

    EXPECT_DOUBLE_EQ(cluster.devices[0].cost.unit_ms, 1);
    EXPECT_DOUBLE_EQ(cluster.network.inter.bandwidth_gb, 3);
    EXPECT_DOUBLE_EQ(cluster.model.bytes, 5);
    EXPECT_EQ(cluster.batch(), 7);
}

TEST(MeasuredRunTest, AnUnknownDeviceIsAnError) {
    Cluster cluster = parse_cluster("[nodes h3]\n", "c.cfg");

    try {
        fill_from_runs(cluster, std::vector{two_hosts()});
        FAIL() << "no error";
    } catch (const BadConfig& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("h1 (Tesla V100), h2 (Tesla P100)"));
    }
}

}  // namespace
}  // namespace hetseq
