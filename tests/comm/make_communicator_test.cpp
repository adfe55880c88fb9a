#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/communicator.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

TEST(MakeCommunicatorTest, ACpuCommunicatorSumsOverAllRanks) {
    const HostComm world = test::world();

    const auto communicator = make_communicator(world, test::environment(), at::kCPU);
    at::Tensor tensor = at::full({3}, 2.0);
    communicator->all_reduce_sum(tensor);

    EXPECT_EQ(communicator->size(), world.size());
    EXPECT_EQ(communicator->rank(), world.rank());
    EXPECT_TRUE(communicator->device().is_cpu());
    EXPECT_TRUE(at::equal(tensor, at::full({3}, 2.0 * world.size())));
}

TEST(MakeCommunicatorTest, ASerialCommunicatorNeedsNoMpi) {
    const auto communicator = make_communicator(HostComm::serial(), test::environment(), at::kCPU);
    at::Tensor tensor = at::full({3}, 2.0);

    const auto work = communicator->start_all_reduce_sum(tensor);
    communicator->broadcast(tensor, 0);

    EXPECT_TRUE(work->done());
    EXPECT_EQ(communicator->size(), 1);
    EXPECT_TRUE(at::equal(tensor, at::full({3}, 2.0)));
}

TEST(MakeCommunicatorTest, AGpuThatIsNotThereIsAnErrorOnAllRanks) {
    const HostComm world = test::world();
    const bool several = world.size() > 1;
    const at::Device device =
        several && world.rank() == 0 ? at::Device(at::kCUDA, 99) : at::Device(at::kCPU);
    std::string text;

    try {
        make_communicator(world, test::environment(), device);
    } catch (const Error& error) {
        text = error.what();
    }

    EXPECT_THAT(text, testing::HasSubstr(several ? "[rank 0" : ""));
    EXPECT_EQ(text.empty(), !several);
}

}  // namespace
}  // namespace hetseq
