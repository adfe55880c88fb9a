// Ten updates on GPUs against the same on one CPU, fp64, over NCCL where there are several ranks.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "test_world.hpp"
#include "train/toy_run.hpp"

namespace hetseq::test {
namespace {

class GpuTrainingTest : public testing::Test {
protected:
    void SetUp() override {
        try {
            topology_ = discover_topology(world_, DeviceChoice::cuda);
        } catch (const Error& error) {
            GTEST_SKIP() << "no GPU for each of " << world_.size() << " ranks: " << error.what();
        }
        if (!topology_.shared_devices().empty())
            GTEST_SKIP() << "no GPU for each of " << world_.size() << " ranks: they share one";
        corpus_ = write_toy_corpus(world_, 53);
    }
    void TearDown() override {
        if (!corpus_.empty())
            remove_toy_corpus(world_, corpus_);
    }

    ToyRun on_gpus() const {
        return {.data = corpus_,
                .capacities = world_.size() > 1 ? std::vector<std::int64_t>{3, 1}
                                                : std::vector<std::int64_t>{3},
                .dropout = 0.2,
                .validate = true,
                .device = at::Device(topology_.rank(world_.rank()).device)};
    }
    static ToyResult on_one_cpu(ToyRun run) {
        run.capacities = {6};
        run.device = at::kCPU;
        return train_toy(test::environment(), HostComm::serial(), run);
    }
    ToyResult on_gpus(const ToyRun& run) const {
        return train_toy(test::environment(), world_, run);
    }
    static double largest_difference(const at::Tensor& a, const at::Tensor& b) {
        return ((a - b).abs() / a.abs().clamp_min(1)).max().item<double>();
    }

    HostComm world_ = test::world();
    Topology topology_;
    std::string corpus_;
};

TEST_F(GpuTrainingTest, TenUpdatesWithDropoutGiveWhatOneCpuGives) {
    const ToyRun run = on_gpus();

    const ToyResult expected = on_one_cpu(run);
    const ToyResult result = on_gpus(run);

    EXPECT_TRUE(result.parameters.is_cuda());
    EXPECT_LE(largest_difference(expected.parameters, result.parameters.cpu()), 1e-12);
    EXPECT_NEAR(result.report.last_valid->loss(), expected.report.last_valid->loss(), 1e-11);
}

TEST_F(GpuTrainingTest, SeveralMicroBatchesAndBucketsGiveTheSame) {
    ToyRun run = on_gpus();
    run.batch_size = 40;
    run.bucket_bytes = 1;

    EXPECT_LE(largest_difference(on_one_cpu(run).parameters, on_gpus(run).parameters.cpu()), 1e-12);
}

TEST_F(GpuTrainingTest, AllRanksHoldTheSameBits) {
    const at::Tensor parameters = on_gpus(on_gpus()).parameters.cpu();

    const std::string own(static_cast<const char*>(parameters.const_data_ptr()),
                          parameters.nbytes());
    EXPECT_EQ(world_.broadcast(own, 0), own);
}

TEST_F(GpuTrainingTest, ALossThatIsNotFiniteOnOneRankSkipsOnAll) {
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

}  // namespace
}  // namespace hetseq::test
