#include "host/cuda_device_name.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

const DeviceUuid uuid{
    0xc6, 0xd4, 0xf1, 0xef, 0x42, 0xe4, 0x5d, 0xe3, 0x91, 0xc7, 0x45, 0xd7, 0x1c, 0x87, 0xeb, 0x3f};
const std::string slice = "NVIDIA A100-SXM4-40GB MIG 1g.5gb";

TEST(CudaDeviceNameTest, AGpuIsCalledAsNvidiaSmiCallsIt) {
    const std::string expected = "GPU-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f";

    EXPECT_EQ(device_uuid("NVIDIA H100", uuid, ""), expected);
    EXPECT_EQ(device_uuid("NVIDIA H100", uuid, "0"), expected);
    EXPECT_EQ(device_uuid("NVIDIA H100", uuid, "GPU-c6d4"), expected);
}

TEST(CudaDeviceNameTest, ASliceIsCalledAsNvidiaSmiCallsIt) {
    const std::string expected = "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f";

    EXPECT_EQ(device_uuid(slice, uuid, ""), expected);
    EXPECT_EQ(device_uuid(slice, uuid, "0,1"), expected);
    EXPECT_EQ(device_uuid(slice, uuid, "MIG-a,MIG-b"), expected);
}

TEST(CudaDeviceNameTest, SlicesThatReportTheUuidOfTheirGpuAreToldApart) {
    const std::string first = "MIG-GPU-6482a92e-d06b-dc68-c272-e3d8f7ecabbf/7/0";
    const std::string second = "MIG-GPU-6482a92e-d06b-dc68-c272-e3d8f7ecabbf/8/0";

    EXPECT_EQ(device_uuid(slice, uuid, first), first);
    EXPECT_EQ(device_uuid(slice, uuid, second), second);
}

TEST(CudaDeviceNameTest, AnAddressIsWrittenAsLspciWritesIt) {
    EXPECT_EQ(pci_address(0, 0x59, 0), "0000:59:00.0");
    EXPECT_EQ(pci_address(1, 5, 0x1f), "0001:05:1f.0");
}

}  // namespace
}  // namespace hetseq
