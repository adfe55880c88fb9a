// Micro-batches on their way to a device without free memory, over the stand-in of CUDA.
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "hetseq/data/loading/device_transfer.hpp"

#include "gpu.hpp"
#include "stand_in/cuda/stand_in_cuda.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

// Too large for the blocks that LibTorch shares among small tensors.
constexpr std::int64_t large = 3 << 20;

class FullDeviceTest : public testing::Test {
protected:
    void SetUp() override {
        c10::cuda::CUDACachingAllocator::emptyCache();
        for (int i = 0; i < 2; ++i) {
            MicroBatch batch;
            batch.tensors = {{"x", at::full({large}, i, at::kFloat)}};
            batch.sample_ids = at::full({large}, i, at::kLong);
            batches_.push_back(batch);
        }
    }
    void TearDown() override {
        stand_in::fail_allocation_after(-1);
        EXPECT_THAT(stand_in::take_misuses(), testing::IsEmpty());
    }

    std::shared_ptr<DeviceTransfer> transfer_ = make_device_transfer(test::gpu());
    std::vector<MicroBatch> batches_;
};

TEST_F(FullDeviceTest, TensorsWithoutMemoryWaitInHostMemory) {
    stand_in::fail_allocation_after(3);

    transfer_->send(batches_)->wait(batches_);

    EXPECT_TRUE(batches_[0].tensors.at("x").is_cuda());
    EXPECT_TRUE(batches_[0].sample_ids.is_cuda());
    EXPECT_TRUE(batches_[1].tensors.at("x").is_cuda());
    EXPECT_TRUE(batches_[1].sample_ids.is_cpu());
}

TEST_F(FullDeviceTest, TheyAreBroughtWhenMemoryIsFree) {
    stand_in::fail_allocation_after(0);
    transfer_->send(batches_)->wait(batches_);
    stand_in::fail_allocation_after(-1);

    for (int i = 0; i < 2; ++i) {
        const MicroBatch batch = transfer_->bring(batches_[static_cast<std::size_t>(i)]);

        EXPECT_TRUE(batch.tensors.at("x").is_cuda());
        EXPECT_TRUE(batch.tensors.at("x").cpu().equal(at::full({large}, i, at::kFloat)));
        EXPECT_TRUE(batch.sample_ids.cpu().equal(at::full({large}, i, at::kLong)));
    }
}

TEST_F(FullDeviceTest, WithoutMemoryThenTheStepHearsOfIt) {
    stand_in::fail_allocation_after(0);
    transfer_->send(batches_)->wait(batches_);

    EXPECT_THROW(transfer_->bring(batches_[0]), c10::OutOfMemoryError);
}

}  // namespace
}  // namespace hetseq
