#include <chrono>
#include <future>
#include <memory>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/comm/nccl/nccl_info.hpp"

#include "comm/communicators.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using namespace std::chrono_literals;

at::Device device_of(const Topology& topology, const HostComm& world) {
    return at::Device(topology.rank(world.rank()).device);
}

class NcclCommunicatorTest : public testing::Test {
protected:
    void SetUp() override {
        try {
            topology_ = discover_topology(world_, DeviceChoice::cuda);
        } catch (const Error& error) {
            GTEST_SKIP() << "needs a GPU for each of " << world_.size()
                         << " ranks: " << error.what();
        }
        if (!topology_.shared_devices().empty())
            GTEST_SKIP() << "needs a GPU for each rank; " << topology_.table();
        communicator_ = make_nccl_communicator(world_, device_of(topology_, world_), {});
    }

    at::TensorOptions on_device() const {
        return at::TensorOptions(at::kFloat).device(communicator_->device());
    }

    HostComm world_ = test::world();
    Topology topology_;
    std::unique_ptr<Communicator> communicator_;
};

TEST_F(NcclCommunicatorTest, SumsOverAllRanks) {
    const int n = world_.size();
    for (const std::int64_t count : {0, 1, 1000, 1000003}) {
        at::Tensor tensor = at::full({count}, world_.rank() + 1, on_device());
        communicator_->all_reduce_sum(tensor);
        EXPECT_TRUE((tensor == n * (n + 1) / 2).all().item<bool>()) << count;
    }
}

TEST_F(NcclCommunicatorTest, WaitsForTheCurrentStreamsWork) {
    const at::Tensor a = at::ones({1024, 1024}, on_device());
    at::Tensor product = at::mm(a, a);
    for (int i = 0; i < 10; ++i)
        product = at::mm(product, a) / 1024;

    const auto work = communicator_->start_all_reduce_sum(product);
    work->wait();

    EXPECT_TRUE((product == 1024 * world_.size()).all().item<bool>());
}

TEST_F(NcclCommunicatorTest, WaitsOnceForTheSumAndForWhatUsesItOnTheDevice) {
    const at::Tensor sum = at::full({1000}, world_.rank() + 1, on_device());
    const at::Tensor host = at::zeros({1000}, at::kFloat).pin_memory();
    const auto work = communicator_->start_all_reduce_sum(sum);

    work->wait_then([&] {
        sum.mul_(2);
        host.copy_(sum, /*non_blocking=*/true);
    });

    EXPECT_TRUE((host == world_.size() * (world_.size() + 1)).all().item<bool>());
    EXPECT_TRUE(work->done());
}

TEST_F(NcclCommunicatorTest, DoesNotWaitForWhatIsAskedMeanwhile) {
    const at::Tensor sum = at::full({1000}, world_.rank() + 1, on_device());
    const auto work = communicator_->start_all_reduce_sum(sum);
    std::promise<void> host_went_on;
    auto own = std::make_unique<std::future<void>>(host_went_on.get_future());
    const auto wait_for_host = [](void* future) {
        const std::unique_ptr<std::future<void>> signal{static_cast<std::future<void>*>(future)};
        signal->wait_for(60s);  // a host that waits for this fails by time
    };
    const auto begin = std::chrono::steady_clock::now();

    work->wait_then(
        [&] { sum.mul_(2); },
        [&] {
            C10_CUDA_CHECK(cudaLaunchHostFunc(
                c10::cuda::getCurrentCUDAStream().stream(), wait_for_host, own.release()));
        });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 55s);
    host_went_on.set_value();

    EXPECT_TRUE((sum == world_.size() * (world_.size() + 1)).all().item<bool>());
}

TEST_F(NcclCommunicatorTest, ManyInFlightCompleteInOrder) {
    std::vector<at::Tensor> tensors;
    std::vector<std::unique_ptr<Work>> works;
    for (int i = 0; i < 40; ++i) {
        tensors.push_back(at::full({100000}, i, on_device()));
        works.push_back(communicator_->start_all_reduce_sum(tensors.back()));
    }

    works.back()->wait();

    for (int i = 0; i < 40; ++i) {
        EXPECT_TRUE(works[std::size_t(i)]->done());
        EXPECT_GE(works[std::size_t(i)]->own_ms(), 0);
        EXPECT_TRUE((tensors[std::size_t(i)] == i * world_.size()).all().item<bool>());
    }
}

TEST_F(NcclCommunicatorTest, BroadcastMakesAllTensorsTheRoots) {
    for (int root = 0; root < world_.size(); ++root) {
        at::Tensor tensor = at::full({1000}, world_.rank(), on_device().dtype(at::kLong));
        communicator_->broadcast(tensor, root);
        EXPECT_TRUE((tensor == root).all().item<bool>());
    }
}

TEST_F(NcclCommunicatorTest, WorkOutlivesItsCommunicator) {
    at::Tensor tensor = at::ones({1000}, on_device());

    const auto work = communicator_->start_all_reduce_sum(tensor);
    communicator_.reset();
    work->wait();

    EXPECT_TRUE((tensor == world_.size()).all().item<bool>());
}

TEST(NcclInfoTest, VersionsNeedNoGpu) {
    EXPECT_THAT(nccl_compiled_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
    EXPECT_EQ(nccl_loaded_version(), nccl_compiled_version());
    EXPECT_THAT(cuda_runtime_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+"));
    EXPECT_THAT(cuda_driver_version(), testing::MatchesRegex("no driver|[0-9]+\\.[0-9]+"));
}

TEST(NcclErrorsTest, AGpuThatIsNotThereIsADeviceError) {
    EXPECT_THROW(nccl_device(at::Device(at::kCUDA, 99)), DeviceError);
}

}  // namespace
}  // namespace hetseq
