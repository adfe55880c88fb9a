#include "hetseq/plan/cluster_file.hpp"

#include <random>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;

const char* const whole = R"(# two kinds
[device p100]
start-ms = 1        # A
micro-batch-ms = 2  ; a
unit-ms = 0.5
micro-batch = 32
memory-units = 16
max-units = 64
update-ms = 3

[device xp]
times = 8=20, 16=36

[nodes fast]
device = p100
gpus = 4
count = 2

[nodes slow]
device = xp
inter-bandwidth-gb = 0.125

[links]
intra-latency-us = 10
intra-bandwidth-gb = 12
inter-latency-us = 50
inter-bandwidth-gb = 1.25
all-reduce = tree
inter-update-ms = 4

[model]
parameter-bytes = 4e8
bucket-mib = 25
backward-fraction = 0.6

[job]
units-per-rank = 32
balance = equal
updates = 1000
spread = 0.05

[fit]
parameters = compute:xp, inter-bandwidth-gb
row = fit 900 fast=1
row = fit 940 fast=2 slow=1 batch=512
row = predict 980.5 slow=3
)";

std::string message_of_parsing(const std::string& text) {
    try {
        parse_cluster(text, "c.cfg");
    } catch (const BadConfig& error) {
        return error.what();
    }
    return "no error";
}

TEST(ClusterFileTest, ReadsDevicesAndNodes) {
    const Cluster cluster = parse_cluster(whole, "c.cfg");

    ASSERT_EQ(cluster.devices.size(), 2u);
    const DeviceClass& p100 = cluster.devices[0];
    EXPECT_EQ(p100.name, "p100");
    EXPECT_DOUBLE_EQ(p100.cost.start_ms, 1);
    EXPECT_DOUBLE_EQ(p100.cost.micro_batch_ms, 2);
    EXPECT_DOUBLE_EQ(p100.cost.unit_ms, 0.5);
    EXPECT_EQ(p100.cost.micro_batch, 16) << "memory caps it";
    EXPECT_EQ(p100.cost.max_units, 64);
    EXPECT_DOUBLE_EQ(p100.update_ms, 3);
    ASSERT_EQ(cluster.nodes.size(), 2u);
    EXPECT_EQ(cluster.nodes[0].gpus, 4);
    EXPECT_EQ(cluster.nodes[0].count, 2);
    EXPECT_FALSE(cluster.nodes[0].inter);
    EXPECT_DOUBLE_EQ(cluster.nodes[1].inter.value().bandwidth_gb, 0.125);
    EXPECT_EQ(cluster.ranks(), 9);
}

TEST(ClusterFileTest, ReadsEveryAllReduce) {
    const auto algorithm = [](const std::string& name) {
        return parse_cluster("[device d]\nunit-ms = 1\n[nodes d]\n[links]\nall-reduce = " + name +
                                 "\n[job]\nbatch = 8\n",
                             "c.cfg")
            .network.algorithm;
    };

    EXPECT_EQ(algorithm("ring"), AllReduceAlgorithm::ring);
    EXPECT_EQ(algorithm("tree"), AllReduceAlgorithm::tree);
    EXPECT_EQ(algorithm("mpi"), AllReduceAlgorithm::mpi);
}

TEST(ClusterFileTest, ReadsLinksModelAndJob) {
    const Cluster cluster = parse_cluster(whole, "c.cfg");

    EXPECT_TRUE(cluster.network.given);
    EXPECT_DOUBLE_EQ(cluster.network.intra.latency_us, 10);
    EXPECT_DOUBLE_EQ(cluster.network.inter.bandwidth_gb, 1.25);
    EXPECT_EQ(cluster.network.algorithm, AllReduceAlgorithm::tree);
    EXPECT_DOUBLE_EQ(cluster.network.inter_update_ms, 4);
    EXPECT_DOUBLE_EQ(cluster.model.bytes, 4e8);
    EXPECT_DOUBLE_EQ(cluster.model.bucket_mib, 25);
    EXPECT_DOUBLE_EQ(cluster.model.backward_fraction, 0.6);
    EXPECT_EQ(cluster.batch(), 9 * 32);
    EXPECT_EQ(cluster.job.cut, Cut::equal);
    EXPECT_EQ(cluster.job.updates, 1000);
    EXPECT_DOUBLE_EQ(cluster.job.spread, 0.05);
}

TEST(ClusterFileTest, TakesFilesOfWindowsEditors) {
    std::string windows = "\xEF\xBB\xBF";
    for (const char c : std::string(whole))
        windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
    EXPECT_EQ(parse_cluster(windows, "c.cfg").job.updates, 1000);

    EXPECT_THAT(message_of_parsing("\n[job]\rspread = 0.05\r"),
                HasSubstr("c.cfg line 2 holds a carriage return"));
    EXPECT_THAT(message_of_parsing("\xFF\xFE["), HasSubstr("c.cfg is text in UTF-16"));
}

TEST(ClusterFileTest, ReadsTimesAsALine) {
    const StepCost cost = parse_cluster(whole, "c.cfg").devices[1].cost;

    EXPECT_NEAR(cost.time_ms(8), 20, 1e-9);
    EXPECT_NEAR(cost.time_ms(16), 36, 1e-9);
    EXPECT_NEAR(cost.unit_ms, 2, 1e-9);
}

TEST(ClusterFileTest, ReadsTimesThatNoLineDescribesAsATable) {
    const StepCost cost = parse_cluster(
                              "[nodes a]\n[device a]\ntimes = 8=10, 16=10, 32=40\n"
                              "[job]\nbatch = 8\n",
                              "c.cfg")
                              .devices[0]
                              .cost;

    EXPECT_DOUBLE_EQ(cost.time_ms(12), 10);
    EXPECT_DOUBLE_EQ(cost.time_ms(24), 25);
}

TEST(ClusterFileTest, ReadsRowsOfTheFit) {
    const Cluster cluster = parse_cluster(whole, "c.cfg");

    ASSERT_EQ(cluster.fit.size(), 2u);
    EXPECT_EQ(cluster.fit[0].device, 1u);
    EXPECT_EQ(cluster.fit[1].number, FitNumber::inter_bandwidth);
    ASSERT_EQ(cluster.rows.size(), 3u);
    EXPECT_TRUE(cluster.rows[0].is_fitted);
    EXPECT_THAT(cluster.rows[1].nodes, testing::ElementsAre(2, 1));
    EXPECT_EQ(cluster.rows[1].batch, 512);
    EXPECT_FALSE(cluster.rows[2].is_fitted);
    EXPECT_DOUBLE_EQ(cluster.rows[2].step_ms, 980.5);
}

const char* const layered = R"([nodes a]
[device a]
tflops = 5.5
launch-ms = 0.25
message-ms-per-mib = 1.5
layer-ms = block=1.5

[layer stem]
parameters-m = 0.01
gflop = 0.5
kept-mib = 8
output-mib = 1

[layer block]
count = 3
parameters-m = 2.5
gflop = 4
kept-mib = 2
output-mib = 0.5
workspace-mib = 16

[job]
batch = 64
micro-batches = 4, 16 8
)";

TEST(ClusterFileTest, ReadsLayersInTheirOrderAndTheirTimes) {
    const Cluster cluster = parse_cluster(layered, "c.cfg");

    ASSERT_EQ(cluster.layers.size(), 2u);
    EXPECT_EQ(cluster.layers[0].name, "stem");
    EXPECT_EQ(cluster.layers[0].count, 1);
    const LayerClass& block = cluster.layers[1];
    EXPECT_EQ(block.count, 3);
    EXPECT_DOUBLE_EQ(block.parameters, 2.5e6);
    EXPECT_DOUBLE_EQ(block.gflop, 4);
    EXPECT_DOUBLE_EQ(block.kept_mib, 2);
    EXPECT_DOUBLE_EQ(block.output_mib, 0.5);
    EXPECT_DOUBLE_EQ(block.workspace_mib, 16);
    const DeviceClass& device = cluster.devices[0];
    EXPECT_DOUBLE_EQ(device.tflops, 5.5);
    EXPECT_DOUBLE_EQ(device.launch_ms, 0.25);
    EXPECT_DOUBLE_EQ(device.message_ms_per_mib, 1.5);
    EXPECT_THAT(device.layer_ms, testing::ElementsAre(testing::Pair("block", 1.5)));
    EXPECT_THAT(cluster.job.micro_batches, testing::ElementsAre(16, 8, 4));
}

TEST(ClusterFileTest, ErrorsOfLayersNameTheLineAndTheRemedy) {
    const std::string layer =
        "[layer a]\nparameters-m = 1\ngflop = 1\nkept-mib = 1\noutput-mib = 1\n";
    const std::string two = layer + "[layer b" + layer.substr(8);
    const std::string job = "[job]\nmicro-batches = 8\n";
    const std::vector<std::pair<std::string, std::string>> cases{
        {"[layer a]\ngflop = 1", "line 1: [layer a] has no 'parameters-m'"},
        {"[layer a]\nparameters-m = 1\ngflop = 1\nkept-mib = 1",
         "[layer a] has no 'output-mib' (layouts need"},
        {layer + "gflops = 3", "line 6: unknown key 'gflops' in [layer a]: Did you mean gflop?"},
        {layer + "count = 300", "'300' is not a whole number from 1 to 256"},
        {layer + "count = 200\n[layer b]\ncount = 57\n" + layer.substr(10),
         "line 8: the model has more than 256 layers"},
        {layer, "the model has layers, but the job no 'micro-batches'"},
        {job, "'micro-batches' in [job], but no layers"},
        {"[job]\nmicro-batches = 0", "line 2: micro-batches: '0' is not a whole number from 1"},
        {"[job]\nmicro-batches = 1 2 3 4 5 6 7 8 9", "line 2: more than 8 micro-batches"},
        {layer + job + "[model]\nparameters = 3", "both 'parameters' in [model] and [layer NAME]"},
        {layer + job + "[model]\nbackward-fraction = 1", "'1' is not a number from 0 to 0.99"},
        {layer + job + "[device d]\nlayer-ms = b=1",
         "line 9: layer-ms: no layer 'b': Did you mean a?"},
        {layer + job + "[device d]\nlayer-ms = a", "line 9: layer-ms: cannot read 'a'"},
        {layer + job + "[device d]\nlayer-ms = a=1, a=2", "line 9: layer-ms: 'a' stands twice"},
        {layer + "[tied t]\nlayers = a", "line 7: [tied t] names fewer than two layers"},
        {layer + "[tied t]\nlayers = a, c", "line 7: no layer 'c' ([tied NAME] names"},
        {layer + "[tied t]\nlayers = a, a", "line 7: 'a' stands twice"},
        {two + "[tied t]\nlayers = a, b\nlayers = a, b", "line 13: 'a' stands twice"},
        {two + "[tied t]\nlayers = a, b\nparameters-m = 0.6\n"
               "[tied u]\nlayers = b, a\nparameters-m = 0.6",
         "line 16: [tied u] and others before it share more parameters than the layer 'b' has"},
        {"[tied t]\nlayers = a, b", "line 2: [tied NAME], but no layers"},
        {layer + "count = 2\n[tied t]\nlayers = a, b", "line 8: there are several layers 'a'"},
        {two + "[tied t]\nlayers = a, b\nparameters-m = 2",
         "line 13: [tied t] needs 'parameters-m' of at most those of the layer 'a'"},
        {two + "[tied t]\nlayers = a, b", "line 11: [tied t] needs 'parameters-m'"},
        {two + "[tied t]\nlayers = a, b\nparameters-m = 1\nfilled = 0.5",
         "line 14: 'filled' has 1 part for 2 layers"},
        {two + "[tied t]\nlayers = a, b\nparameters-m = 1\nfilled = 2, 1",
         "line 14: filled: '2' is not a number from 0 to 1"},
        {"[device d]\ntflops = 1", "line 2: 'tflops', but the model has no layers"},
        {"[device d]\nlayer-ms = a=1", "line 2: 'layer-ms', but the model has no layers"},
    };

    for (const auto& [text, expected] : cases)
        EXPECT_THAT(message_of_parsing(text), HasSubstr(expected)) << text;
}

TEST(ClusterFileTest, ErrorsNameTheLineAndTheRemedy) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"x = 1", "c.cfg line 1: 'x = 1' stands before any section"},
        {"[job\nbatch = 1", "line 1: cannot read '[job'"},
        {"[job]\nbatch", "line 2: cannot read 'batch'"},
        {"[job]\nbatch =", "line 2: 'batch' has no value"},
        {"[job]\n\nbatsh = 3", "line 3: unknown key 'batsh' in [job]: Did you mean batch?"},
        {"[job]\nbatch = 3\nbatch = 4", "line 3: 'batch' is given twice in [job]"},
        {"[job]\nbatch = -3", "line 2: batch: '-3' is not a whole number from 1 to 1,000,000,000"},
        {"[job]\nbatch = 3.5", "'3.5' is not a whole number"},
        {"[job]\nspread = nan", "'nan' is not a number from 0 to 2"},
        {"[job]\nspread = inf", "'inf' is not a number from 0 to 2"},
        {"[job]\nbatch = 3\nunits-per-rank = 3", "line 3: both 'batch' and 'units-per-rank'"},
        {"[job]\nbalance = fair", "'fair' is not one of auto, declared, equal"},
        {"[jobs]", "line 1: unknown section [jobs]: Did you mean job?"},
        {"[job]\n[job]", "line 2: [job] stands twice (first on line 1): join them"},
        {"[job x]", "[job x] has a name"},
        {"[device]", "[device] has no name"},
        {"[device a]\nunit-ms = 1\ntimes = 1=1", "line 3: both 'unit-ms' and 'times'"},
        {"[device a]\nstart-ms = 1\ncosts = c.json", "line 3: both 'start-ms' and 'costs'"},
        {"[device a]\ncosts = c.json\ntimes = 1=1", "line 2: both 'times' and 'costs'"},
        {"[device a]\ntimes = 8:3", "line 2: times: cannot read '8:3'"},
        {"[device a]\ntimes = 0=3", "'0' is not a whole number from 1"},
        {"[device a]\nunit-ms = 0", "'0' is not a number from 1e-06"},
        {"[links]\nall-reduce = star", "'star' is not one of ring, tree"},
        {"[links]\ninter-bandwidth-gb = 0", "'0' is not a number from 1e-06"},
        {"[model]\nparameter-bytes = 1e14\nbucket-mib = 1",
         "line 2: the model has more than 65536"},
        {"[nodes a]\ngpus = 4\ncount = 5000",
         "the nodes have 20000 GPUs (a plan takes at most 16384"},
        {"[fit]\nparameters = color", "line 2: parameters: 'color' cannot be fitted"},
        {"[fit]\nparameters = compute:z", "line 2: parameters: no device 'z'"},
        {"[fit]\nparameters = spread", "1 numbers are to be fitted to 0 rows"},
        {"[nodes a]\n[fit]\nrow = fit 3 b=1", "line 3: row: no nodes 'b'"},
        {"[nodes a]\n[fit]\nrow = fit 3 a", "line 3: row: cannot read 'a'"},
        {"[nodes a]\n[fit]\nrow = guess 3 a=1", "line 3: row: cannot read 'guess 3 a=1'"},
        {"[nodes a]\n[fit]\nrow = fit 3 a=0", "line 3: row: its nodes have 0 GPUs"},
        {std::string(5000, 'x'), "line 1: the line is longer than 4096 bytes"},
    };

    for (const auto& [text, expected] : cases)
        EXPECT_THAT(message_of_parsing(text), HasSubstr(expected)) << text;
}

TEST(ClusterFileTest, AnIncompleteDescriptionIsAnError) {
    const auto complaint = [](const std::string& text) -> std::string {
        try {
            require_complete(parse_cluster(text, "c.cfg"));
        } catch (const BadConfig& error) {
            return error.what();
        }
        return "no error";
    };

    EXPECT_THAT(complaint(""), HasSubstr("the cluster has no GPUs"));
    EXPECT_THAT(complaint("[nodes a]"), HasSubstr("the job has no batch"));
    EXPECT_THAT(complaint("[nodes a]\n[job]\nbatch = 1"), HasSubstr("the device 'a' has no times"));
    EXPECT_EQ(complaint("[nodes a]\n[device a]\nunit-ms = 1\n[job]\nbatch = 1"), "no error");
}

// Whatever bytes stand in a description, reading ends with a cluster or a BadConfig.
TEST(ClusterFileTest, DamagedTextIsReadOrRefused) {
    std::mt19937 random(11);
    const std::string texts[] = {whole, layered};
    const std::string bytes = "[]=#\n 0123456789e-+.,:\t\r\"\x00\xffx";

    for (int instance = 0; instance < 20000; ++instance) {
        std::string damaged = texts[instance % 2];
        for (unsigned i = 0; i <= random() % 6; ++i) {
            const std::size_t place = random() % damaged.size();
            const std::size_t length = random() % 8;
            switch (random() % 3) {
                case 0:
                    damaged.erase(place, length);
                    break;
                case 1:
                    damaged.insert(place, 1, bytes[random() % bytes.size()]);
                    break;
                default:
                    damaged.insert(place, damaged.substr(random() % damaged.size(), 40));
            }
        }
        try {
            parse_cluster(damaged, "c.cfg");
        } catch (const BadConfig& error) {
            EXPECT_THAT(error.what(), HasSubstr("c.cfg"));
        }
    }
}

}  // namespace
}  // namespace hetseq
