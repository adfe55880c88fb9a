// Ten updates on GPUs, and on GPUs beside CPUs, against the same on one CPU, fp64.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "test_world.hpp"
#include "train/toy_run.hpp"

namespace hetseq::test {
namespace {

enum class Placement { a_gpu_each, the_last_on_its_cpu, one_gpu_for_all };

std::string name_of(const testing::TestParamInfo<Placement>& info) {
    switch (info.param) {
        case Placement::a_gpu_each:
            return "AGpuEach";
        case Placement::the_last_on_its_cpu:
            return "TheLastOnItsCpu";
        case Placement::one_gpu_for_all:
            break;
    }
    return "OneGpuForAll";
}

class GpuTrainingTest : public testing::TestWithParam<Placement> {
protected:
    void SetUp() override {
        const bool is_last = world_.size() > 1 && world_.rank() == world_.size() - 1;
        const bool on_cpu = is_last && GetParam() == Placement::the_last_on_its_cpu;
        try {
            const Topology topology =
                discover_topology(world_, on_cpu ? DeviceChoice::cpu : DeviceChoice::cuda);
            device_ = at::Device(topology.rank(world_.rank()).device);
            if (GetParam() == Placement::a_gpu_each && !topology.shared_devices().empty())
                GTEST_SKIP() << "no GPU for each of " << world_.size() << " ranks: they share one";
        } catch (const Error& error) {
            GTEST_SKIP() << "no GPU: " << error.what();
        }
        if (GetParam() == Placement::one_gpu_for_all)
            device_ = at::Device(at::kCUDA, 0);
        current_.reset_device(device_);
        corpus_ = write_toy_corpus(world_, 53);
    }
    void TearDown() override {
        if (!corpus_.empty())
            remove_toy_corpus(world_, corpus_);
    }

    ToyRun on_gpus() const {
        std::vector<std::int64_t> capacities(static_cast<std::size_t>(world_.size()), 1);
        capacities[0] = 3;
        return {.data = corpus_,
                .capacities = capacities,
                .dropout = 0.2,
                .validate = true,
                .device = device_};
    }
    static ToyResult on_one_cpu(ToyRun run) {
        run.capacities = {6};
        run.shards = {};
        run.device = at::kCPU;
        return train_toy(test::environment(), HostComm::serial(), run);
    }
    ToyResult on_gpus(const ToyRun& run) const {
        return train_toy(test::environment(), world_, run);
    }
    static double largest_difference(const at::Tensor& a, const at::Tensor& b) {
        return ((a - b).abs() / a.abs().clamp_min(1)).max().item<double>();
    }

    // Parts 1, 3, 0, 2 of the state; the embedding, of three blocks, is cut.
    ToyRun sharded() const {
        const std::vector<std::int64_t> parts{1, 3, 0, 2};
        ToyRun run = on_gpus();
        run.shards = {parts.begin(), parts.begin() + world_.size()};
        run.stretch = 250;
        run.updates = 4;
        run.clip_norm = 0.05;
        return run;
    }

    HostComm world_ = test::world();
    at::Device device_ = at::kCPU;
    c10::OptionalDeviceGuard current_;
    std::string corpus_;
};

TEST_P(GpuTrainingTest, TenUpdatesWithDropoutGiveWhatOneCpuGives) {
    const ToyRun run = on_gpus();

    const ToyResult expected = on_one_cpu(run);
    const ToyResult result = on_gpus(run);

    EXPECT_EQ(result.parameters.device(), device_);
    EXPECT_LE(largest_difference(expected.parameters, result.parameters.cpu()), 1e-12);
    EXPECT_NEAR(result.report.last_valid->loss(), expected.report.last_valid->loss(), 1e-11);
}

TEST_P(GpuTrainingTest, SeveralMicroBatchesAndBucketsGiveTheSame) {
    ToyRun run = on_gpus();
    run.batch_size = 40;
    run.bucket_bytes = 1;

    EXPECT_LE(largest_difference(on_one_cpu(run).parameters, on_gpus(run).parameters.cpu()), 1e-12);
}

TEST_P(GpuTrainingTest, ClippedGradientsGiveTheSame) {
    for (const char* optimizer : {"adam", "lamb", "sgd"}) {
        ToyRun run = on_gpus();
        run.optimizer = optimizer;
        run.updates = 5;
        run.clip_norm = 0.01;

        EXPECT_LE(largest_difference(on_one_cpu(run).parameters, on_gpus(run).parameters.cpu()),
                  1e-12)
            << optimizer;
    }
}

// Without CPUs, whose optimizers round in their own way.
class LikeGpusTest : public GpuTrainingTest {};

TEST_P(LikeGpusTest, AllRanksHoldTheSameBits) {
    const at::Tensor parameters = on_gpus(on_gpus()).parameters.cpu();

    const std::string own(static_cast<const char*>(parameters.const_data_ptr()),
                          parameters.nbytes());
    EXPECT_EQ(world_.broadcast(own, 0), own);
}

TEST_P(GpuTrainingTest, ALossThatIsNotFiniteOnOneRankSkipsOnAll) {
    ToyRun run = on_gpus();
    run.updates = 3;
    run.spoil = [this](const MicroBatch&, const ForwardContext& context, ForwardResult& result) {
        if (world_.rank() == 0 && context.mode == Mode::train && context.update == 2)
            result.losses[1] = result.losses[1] / 0;
    };
    ToyRun shorter = on_gpus();
    shorter.updates = 2;

    const ToyResult result = on_gpus(run);

    EXPECT_EQ(result.report.skipped, 1);
    EXPECT_LE(largest_difference(on_gpus(shorter).parameters.cpu(), result.parameters.cpu()),
              1e-12);
}

TEST_P(GpuTrainingTest, AStateCutOverRanksGivesWhatOneCpuGives) {
    for (const char* optimizer : {"adamw", "lamb", "momentum", "adadelta"}) {
        ToyRun run = sharded();
        run.optimizer = optimizer;

        const ToyResult result = on_gpus(run);

        EXPECT_LE(largest_difference(on_one_cpu(run).parameters, result.parameters.cpu()), 1e-12)
            << optimizer;
    }
}

// Values come from those who hold their state, so GPUs and CPUs hold the same bits.
TEST_P(GpuTrainingTest, UnlikeDevicesHoldTheSameBitsWhereTheStateIsCut) {
    ToyRun run = sharded();
    run.dtype = at::kFloat;
    run.check_interval = 1;
    run.drift = DriftPolicy::abort;

    const at::Tensor values = on_gpus(run).parameters.cpu();

    const std::string own(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
    EXPECT_EQ(world_.broadcast(own, 0), own);
}

// The device steps behind its gate before the host knows: that step must not count.
TEST_P(GpuTrainingTest, AGradientThatIsNotFiniteIsSkippedAndTrainingGoesOn) {
    ToyRun run = on_gpus();
    run.updates = 4;
    run.spoil = [this](const MicroBatch&, const ForwardContext& context, ForwardResult& result) {
        if (world_.rank() == 0 && context.mode == Mode::train && context.update == 2) {
            const at::Tensor root = (result.losses[0] - result.losses[0]).sqrt();  // slope 0 / 0
            result.losses[0] = result.losses[0] + root;
        }
    };
    ToyRun on_cpu = run;
    on_cpu.spoil = [](const MicroBatch&, const ForwardContext& context, ForwardResult& result) {
        if (context.mode == Mode::train && context.update == 2)
            result.losses[0] = result.losses[0] + (result.losses[0] - result.losses[0]).sqrt();
    };

    const ToyResult expected = on_one_cpu(on_cpu);
    const ToyResult result = on_gpus(run);

    EXPECT_EQ(expected.report.skipped, 1);
    EXPECT_EQ(result.report.skipped, 1);
    EXPECT_LE(largest_difference(expected.parameters, result.parameters.cpu()), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Placements,
                         LikeGpusTest,
                         testing::Values(Placement::a_gpu_each, Placement::one_gpu_for_all),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Placements,
                         GpuTrainingTest,
                         testing::Values(Placement::a_gpu_each,
                                         Placement::the_last_on_its_cpu,
                                         Placement::one_gpu_for_all),
                         name_of);

}  // namespace
}  // namespace hetseq::test
