// NCCL's communicator where something is wrong, and what it asks of CUDA, over the stand-ins of
// both.
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/comm/agree.hpp"

#include "comm/communicators.hpp"
#include "stand_in/nccl/stand_in_nccl.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using namespace std::chrono_literals;
using stand_in::network;
using testing::HasSubstr;
using testing::IsEmpty;

// The text of the error of type Expected that `function` throws.
template <class Expected, class Function>
std::string error_of(Function&& function) {
    try {
        function();
    } catch (const Expected& error) {
        return error.what();
    }
    return "no error of the expected type";
}

class NcclFaultsTest : public testing::Test {
protected:
    void SetUp() override {
        network() = {};
        stand_in::take_misuses();
    }
    void TearDown() override {
        network() = {};
        EXPECT_THAT(stand_in::take_misuses(), IsEmpty());
    }

    std::unique_ptr<Communicator> make(const CommunicatorOptions& options = {
                                           .deadline = 20s, .join_deadline = 20s}) {
        return make_nccl_communicator(world_, device_, options);
    }
    // On the device, filled by a slow kernel on the current stream.
    at::Tensor slow_tensor(std::int64_t count, float value) const {
        at::Tensor tensor = at::empty({count}, at::TensorOptions(at::kFloat).device(device_));
        auto* const values = tensor.mutable_data_ptr<float>();
        stand_in::launch(c10::cuda::getCurrentCUDAStream(device_.index()).stream(),
                         "fill",
                         {stand_in::writes(values, static_cast<std::size_t>(count))},
                         [=] {
                             std::this_thread::sleep_for(5ms);
                             std::fill_n(values, count, value);
                         });
        return tensor;
    }
    at::Tensor tensor() const { return slow_tensor(10, 1); }

    HostComm world_ = test::world();
    at::Device device_{at::kCUDA, static_cast<c10::DeviceIndex>(world_.rank())};
    c10::cuda::CUDAGuard current_{device_};  // as the program makes it
};

TEST_F(NcclFaultsTest, CollectivesComeAfterTheStreamsWorkAndBeforeWhatFollows) {
    const auto communicator = make();
    const at::Tensor values = slow_tensor(1000, static_cast<float>(world_.rank() + 1));

    communicator->start_all_reduce_sum(values)->wait();
    const at::Tensor after = values + 1;

    const auto sum = static_cast<float>(world_.size() * (world_.size() + 1) / 2);
    EXPECT_TRUE(after.cpu().equal(at::full({1000}, sum + 1)));
}

TEST_F(NcclFaultsTest, ATensorMayBeFreedAfterTheCommunicator) {
    auto communicator = make();
    at::Tensor values = tensor();
    auto work = communicator->start_all_reduce_sum(values);
    communicator.reset();
    work->wait();
    work.reset();

    values.reset();  // the allocator records an event on the stream that used it
    c10::cuda::CUDACachingAllocator::emptyCache();

    EXPECT_THAT(stand_in::take_misuses(), IsEmpty());
}

TEST_F(NcclFaultsTest, ATensorsMemoryIsNotGivenAwayWhileACollectiveUsesIt) {
    const auto communicator = make({.deadline = 1s});
    at::Tensor values = tensor();
    const void* const memory = values.const_data_ptr();
    network().kernels_hang = true;
    communicator->start_all_reduce_sum(values).reset();
    values.reset();

    const at::Tensor next = tensor();

    EXPECT_NE(next.const_data_ptr(), memory);
    network().kernels_hang = false;
    EXPECT_THROW(communicator->all_reduce_sum(next), CommError);  // behind the one that hangs
}

// NCCL reports an error while it launches, and the kernel may be in the stream already.
TEST_F(NcclFaultsTest, NorAfterALaunchThatFailed) {
    const auto communicator = make();
    at::Tensor values = tensor();
    network().async_error = ncclRemoteError;
    EXPECT_THROW(communicator->start_all_reduce_sum(values), CommError);
    values.reset();

    const at::Tensor next = tensor();

    EXPECT_THAT(stand_in::take_misuses(), IsEmpty());
}

TEST_F(NcclFaultsTest, ACollectiveRunsBesideTheCurrentStream) {
    const auto communicator = make({.deadline = 1s});
    network().kernels_hang = true;
    const auto work = communicator->start_all_reduce_sum(tensor());

    const at::Tensor other = slow_tensor(10, 3);
    EXPECT_TRUE(other.cpu().equal(at::full({10}, 3, at::kFloat)));
    EXPECT_FALSE(work->done());

    EXPECT_THROW(work->wait(), CommError);
}

// Each kernel runs until the rank says that it waits for no other rank.
class OwnWorkTest : public NcclFaultsTest {
protected:
    void SetUp() override {
        NcclFaultsTest::SetUp();
        activity::enter(Phase::reducing, 1);
    }
    void TearDown() override {
        activity::enter(Phase::starting, 0);
        NcclFaultsTest::TearDown();
    }
    // On the current stream.
    void launch_kernel() {
        stand_in::launch(c10::cuda::getCurrentCUDAStream(device_.index()).stream(), [this] {
            for (int i = 0; i < 5000 && activity::now().waits; ++i)
                std::this_thread::sleep_for(1ms);
            seen_ += activity::now().waits ? 0 : 1;
        });
    }

    std::atomic<int> seen_{0};
};

TEST_F(OwnWorkTest, ARankWhoseGpuStillComputesDoesNotWaitForOthers) {
    const auto communicator = make();
    const at::Tensor values = tensor();
    launch_kernel();

    communicator->start_all_reduce_sum(values)->wait();

    EXPECT_EQ(seen_, 1);
    EXPECT_TRUE(activity::now().waits);
}

TEST_F(OwnWorkTest, NorDoesOneWhoseGpuUsesTheSum) {
    const auto communicator = make();
    const at::Tensor values = tensor();

    communicator->start_all_reduce_sum(values)->wait_then([&] { launch_kernel(); });

    EXPECT_EQ(seen_, 1);
    EXPECT_TRUE(activity::now().waits);
}

TEST_F(NcclFaultsTest, EventsAreUsedAgain) {
    const auto communicator = make();
    const at::Tensor values = tensor();
    communicator->all_reduce_sum(values);
    const long before = stand_in::made_events();

    for (int i = 0; i < 20; ++i)
        communicator->all_reduce_sum(values);

    EXPECT_EQ(stand_in::made_events(), before);
}

TEST_F(NcclFaultsTest, WorksHaveTheirOwnTimes) {
    const auto communicator = make();
    network().kernel_time = 4ms;
    const at::Tensor values = tensor();

    const auto first = communicator->start_all_reduce_sum(values);
    const auto second = communicator->start_all_reduce_sum(values);
    second->wait();

    EXPECT_GE(first->own_ms(), 4);
    EXPECT_GE(second->own_ms(), 4);
}

TEST_F(NcclFaultsTest, NcclTakesItsMemoryAtTheStart) {
    constexpr std::int64_t largest = 1 << 20;
    const auto communicator = make({.largest_bytes = largest});
    c10::cuda::CUDACachingAllocator::emptyCache();
    const at::Tensor values =
        at::zeros({largest / 4}, at::TensorOptions(at::kFloat).device(device_));

    stand_in::fail_allocation_after(0);  // the memory is full from now on
    communicator->all_reduce_sum(values);
    communicator->all_reduce_sum(values.narrow(0, 0, 2));
    communicator->broadcast(values, 0);
    communicator->broadcast(values.narrow(0, 0, 2), 0);

    stand_in::fail_allocation_after(-1);
}

TEST_F(NcclFaultsTest, ADeadlineAbortsAndStays) {
    const auto communicator = make({.deadline = 1s});
    const at::Tensor values = tensor();
    network().kernels_hang = true;
    const auto work = communicator->start_all_reduce_sum(values);
    const int aborted = stand_in::aborted_communicators();

    EXPECT_THAT(error_of<CommError>([&] { work->wait(); }), HasSubstr("within its deadline (1 s)"));

    EXPECT_EQ(stand_in::aborted_communicators(), aborted + 1);
    EXPECT_THROW(work->wait(), CommError);
    EXPECT_THROW(communicator->start_all_reduce_sum(values), CommError);
}

TEST_F(NcclFaultsTest, AnErrorThatNcclFindsLaterAborts) {
    const auto communicator = make();
    network().kernels_hang = true;
    const auto work = communicator->start_all_reduce_sum(tensor());
    network().async_error = ncclRemoteError;
    const int aborted = stand_in::aborted_communicators();

    EXPECT_THROW(work->wait(), CommError);

    EXPECT_EQ(stand_in::aborted_communicators(), aborted + 1);
}

TEST_F(NcclFaultsTest, ACallThatFailsAbortsAndStays) {
    const auto communicator = make();
    const at::Tensor values = tensor();
    network().call_result = ncclSystemError;
    const int aborted = stand_in::aborted_communicators();

    EXPECT_THROW(communicator->start_all_reduce_sum(values), CommError);

    network().call_result = ncclSuccess;
    EXPECT_EQ(stand_in::aborted_communicators(), aborted + 1);
    EXPECT_THROW(communicator->start_all_reduce_sum(values), CommError);
}

TEST_F(NcclFaultsTest, ARankThatCannotStartEndsTheOthers) {
    const int last = world_.size() - 1;
    if (world_.rank() == last)
        network().init_result = ncclSystemError;
    const auto begin = std::chrono::steady_clock::now();

    const std::string error = error_of<AgreedError>([&] { make({.join_deadline = 60s}); });

    EXPECT_THAT(error, HasSubstr("ncclCommInitRankConfig failed"));
    if (world_.size() > 1) {
        EXPECT_THAT(error, HasSubstr("[rank " + std::to_string(last)));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

TEST_F(NcclFaultsTest, ARankWithoutMemoryForNcclEndsTheOthers) {
    if (world_.rank() == 0)
        network().connection_memory = stand_in::machine().memory + 1;
    const auto begin = std::chrono::steady_clock::now();

    const std::string error = error_of<AgreedError>([&] { make({.join_deadline = 60s}); });

    EXPECT_THAT(error, HasSubstr("unhandled cuda error"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

TEST_F(NcclFaultsTest, NoRankWaitsForeverForNcclsStart) {
    network().launch_time = 1500ms;

    EXPECT_THAT(error_of<AgreedError>([&] { make({.join_deadline = 1s}); }),
                HasSubstr("NCCL's start on all ranks did not complete within its deadline (1 s)"));
}

}  // namespace
}  // namespace hetseq
