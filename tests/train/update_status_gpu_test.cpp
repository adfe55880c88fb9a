// What the host reads of an update's status on a GPU.
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "hetseq/train/update_status.hpp"

#include "gpu.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

class UpdateStatusOnGpuTest : public testing::Test {
protected:
    void SetUp() override { HETSEQ_NEEDS_GPU(); }
};

// Nothing else waits for the device: the communicator of one rank has nothing to wait for.
TEST_F(UpdateStatusOnGpuTest, IsReadWhenItHasArrived) {
    UpdateStatus status{2, test::gpu()};
    const at::TensorOptions on_gpu = at::TensorOptions(at::kDouble).device(test::gpu());
    for (int update = 1; update <= 5; ++update) {
        status.zero();
        status.add_loss(0, at::full({}, update, on_gpu));
        status.add_loss(1, at::full({}, 10 * update, on_gpu));
        status.send(at::full({}, 100 * update, on_gpu));

        const UpdateStatus::Reading reading = status.read();

        EXPECT_EQ(reading.verdict, Verdict::apply);
        EXPECT_THAT(reading.losses, ElementsAre(update, 10 * update));
        EXPECT_EQ(reading.gradient_norm, 100 * update);
    }
}

TEST_F(UpdateStatusOnGpuTest, ALossThatIsNotFiniteSkipsTheUpdate) {
    UpdateStatus status{1, test::gpu()};
    const at::TensorOptions on_gpu = at::TensorOptions(at::kDouble).device(test::gpu());
    status.add_loss(0, at::full({}, std::numeric_limits<double>::infinity(), on_gpu));
    status.send(at::zeros({}, on_gpu));

    EXPECT_EQ(status.read().verdict, Verdict::skip_loss);
}

}  // namespace
}  // namespace hetseq
