#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/nccl/nccl_info.hpp"

#include "comm/communicators.hpp"

namespace hetseq {
namespace {

TEST(NoNcclCommunicatorTest, AGpuInABuildWithoutCudaIsADeviceError) {
    EXPECT_THROW(make_nccl_communicator(HostComm::serial(), at::Device(at::kCUDA, 0), {}),
                 DeviceError);
}

TEST(NoNcclCommunicatorTest, VersionsAreNotBuilt) {
    EXPECT_EQ(nccl_compiled_version(), "not built");
    EXPECT_EQ(nccl_loaded_version(), "not built");
    EXPECT_EQ(cuda_driver_version(), "not built");
}

}  // namespace
}  // namespace hetseq
