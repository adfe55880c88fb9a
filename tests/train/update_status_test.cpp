#include "hetseq/train/update_status.hpp"

#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/gradient_reducer.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

class UpdateStatusTest : public testing::Test {
protected:
    /// Sums the status of all ranks behind the gradients of a model in bf16.
    void reduce() {
        reducer_.start_rest(status_.slots());
        reducer_.finish({.then = [this] { status_.send(at::scalar_tensor(norm, at::kDouble)); }});
    }
    static constexpr double norm = 0.1;  // more digits than fp32 holds
    bool is_last() const { return world_.rank() == world_.size() - 1; }

    HostComm world_ = test::world();
    std::unique_ptr<Communicator> communicator_ =
        make_communicator(world_, test::environment(), at::kCPU);
    TensorRegistry tensors_ = in_bf16();
    FlatParameters parameters_{tensors_, [](const std::string&) { return true; }};
    GradientReducer reducer_{parameters_, *communicator_, 1};
    UpdateStatus status_{2, at::kCPU};

private:
    static TensorRegistry in_bf16() {
        TensorRegistry tensors;
        tensors.register_parameter("weight", at::ones({30, 40}, at::kBFloat16));
        tensors.register_parameter("bias", at::ones({30}, at::kBFloat16));
        return tensors;
    }
};

// Each sum has more digits than fp32 holds, and is exact in fp64.
TEST_F(UpdateStatusTest, LossesOfManyMicroBatchesAndRanksAreExactBehindGradientsInBf16) {
    constexpr int micro_batches = 5000;
    ASSERT_EQ(parameters_.gradients().scalar_type(), at::kBFloat16);
    for (int i = 0; i < micro_batches; ++i) {
        status_.add_loss(0, at::scalar_tensor(1 + i / 4096.0, at::kFloat));
        status_.add_loss(1, at::scalar_tensor(4096.0, at::kBFloat16));
    }

    reduce();

    const double ranks = world_.size();
    const double indices = micro_batches * (micro_batches - 1) / 2.0;  // 0 + 1 + 2 + ...
    const UpdateStatus::Reading reading = status_.read();
    EXPECT_EQ(reading.verdict, Verdict::apply);
    EXPECT_EQ(reading.losses[0], ranks * (micro_batches + indices / 4096));
    EXPECT_EQ(reading.losses[1], micro_batches * 4096.0 * ranks);
    EXPECT_EQ(reading.gradient_norm, norm);
}

TEST_F(UpdateStatusTest, ALossThatIsNotFiniteOnOneRankSkipsTheUpdateOnAll) {
    const double loss = is_last() ? std::numeric_limits<double>::infinity() : 1;
    status_.add_loss(0, at::scalar_tensor(loss, at::kFloat));

    reduce();

    EXPECT_EQ(status_.read().verdict, Verdict::skip_loss);
}

TEST_F(UpdateStatusTest, ARankOutOfMemoryRepeatsTheUpdateOnAllWhateverTheLosses) {
    if (is_last())
        status_.mark_out_of_memory();
    status_.add_loss(1, at::scalar_tensor(std::numeric_limits<double>::quiet_NaN(), at::kFloat));

    reduce();

    EXPECT_EQ(status_.read().verdict, Verdict::repeat);
}

TEST_F(UpdateStatusTest, ZeroForgetsTheUpdateBefore) {
    status_.add_loss(0, at::scalar_tensor(3, at::kFloat));
    status_.mark_out_of_memory();

    status_.zero();
    reduce();

    const UpdateStatus::Reading reading = status_.read();
    EXPECT_EQ(reading.verdict, Verdict::apply);
    EXPECT_THAT(reading.losses, ElementsAre(0, 0));
}

}  // namespace
}  // namespace hetseq
