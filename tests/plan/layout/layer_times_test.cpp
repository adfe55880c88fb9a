#include "hetseq/plan/layout/layer_times.hpp"

#include <string>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/plan/cluster_file.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

const char* const two_kinds = R"([layer stem]
parameters-m = 1
gflop = 2
kept-mib = 10
output-mib = 1
[layer block]
count = 3
parameters-m = 4
gflop = 8
kept-mib = 5
output-mib = 1
workspace-mib = 5
[model]
backward-fraction = 0.75
[job]
batch = 64
micro-batches = 16, 8, 4
[nodes d]
[device d]
)";

Cluster filled(const std::string& device) {
    Cluster cluster = parse_cluster(two_kinds + device, "c.cfg");
    fill_from_layers(cluster);
    return cluster;
}

// 8 GFLOP of forward at 2 TFLOP/s are 4 ms, and backward takes three times as long.
TEST(LayerTimesTest, AMicroBatchTakesItsOperationsAndTheLaunch) {
    const Cluster cluster = filled("tflops = 2\nlaunch-ms = 0.5\n");

    EXPECT_DOUBLE_EQ(layer_ms(cluster, cluster.layers[1], cluster.devices[0], 4), 0.5 + 4 * 16);
}

TEST(LayerTimesTest, MeasuredTimesGoBeforeOperations) {
    const Cluster cluster = filled("tflops = 2\nlayer-ms = block=3\n");

    EXPECT_DOUBLE_EQ(layer_ms(cluster, cluster.layers[0], cluster.devices[0], 4), 16);
    EXPECT_DOUBLE_EQ(layer_ms(cluster, cluster.layers[1], cluster.devices[0], 4), 12);
}

TEST(LayerTimesTest, TheModelAndDevicesAreTheSumOfTheLayers) {
    const Cluster cluster = filled("tflops = 2\nlaunch-ms = 0.5\n");

    EXPECT_EQ(cluster.model.parameters, 13'000'000);
    EXPECT_DOUBLE_EQ(cluster.model.bytes, 52e6);
    const DeviceClass& device = cluster.devices[0];
    EXPECT_TRUE(device.has_times);
    EXPECT_DOUBLE_EQ(device.cost.unit_ms, 4 + 3 * 16);
    EXPECT_DOUBLE_EQ(device.cost.micro_batch_ms, 4 * 0.5);
    EXPECT_EQ(device.cost.micro_batch, 16);
    EXPECT_DOUBLE_EQ(device.cost.activations_mb, 16 * (10 + 3 * 5 + 5));
}

// The model takes 4 tensors of 13e6 numbers, 198.4 MiB, and a unit 30. Nine tenths of 500 MiB leave
// 251.6, and of 200 nothing.
TEST(LayerTimesTest, TheMicroBatchIsTheLargestThatFits) {
    EXPECT_EQ(filled("tflops = 2\nmemory-mib = 500\n").devices[0].cost.micro_batch, 8);
    EXPECT_EQ(filled("tflops = 2\nmemory-mib = 200\n").devices[0].cost.micro_batch, 4);
    EXPECT_EQ(filled("tflops = 2\nmemory-mib = 5000\n").devices[0].cost.micro_batch, 16);
}

TEST(LayerTimesTest, OwnTimesOfADeviceStay) {
    const Cluster cluster = filled("unit-ms = 7\ntflops = 2\n");

    EXPECT_DOUBLE_EQ(cluster.devices[0].cost.unit_ms, 7);
}

TEST(LayerTimesTest, ADeviceWithoutATimeOfALayerIsAnError) {
    const auto complaint = [](const std::string& device) -> std::string {
        try {
            filled(device);
        } catch (const BadConfig& error) {
            return error.what();
        }
        return "no error";
    };

    EXPECT_THAT(complaint("layer-ms = block=3\n"),
                testing::HasSubstr("the device 'd' has no time of the layer 'stem' (neither "
                                   "'tflops' nor 'layer-ms' of it in [device d]): give one"));
    EXPECT_EQ(complaint("layer-ms = block=3, stem=1\n"), "no error");
}

}  // namespace
}  // namespace hetseq
