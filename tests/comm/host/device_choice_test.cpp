#include "comm/host/device_choice.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

VisibleCudaDevices gpus(int count) {
    VisibleCudaDevices visible;
    for (int i = 0; i < count; ++i)
        visible.devices.push_back({"GPU", "GPU-" + std::to_string(i), 1024, {}});
    if (count == 0)
        visible.why_none = "no driver";
    return visible;
}

TEST(DeviceChoiceTest, EachLocalRankTakesItsOwnGpu) {
    EXPECT_EQ(choose_device(gpus(4), DeviceChoice::automatic, 2, 4), 2);
    EXPECT_EQ(choose_device(gpus(4), DeviceChoice::cuda, 1, 2), 1);
}

TEST(DeviceChoiceTest, ARankThatSeesOneGpuUsesItWhateverItsLocalRank) {
    EXPECT_EQ(choose_device(gpus(1), DeviceChoice::automatic, 3, 4), 0);
}

TEST(DeviceChoiceTest, WithoutGpusTheAutomaticChoiceIsTheCpu) {
    EXPECT_EQ(choose_device(gpus(0), DeviceChoice::automatic, 0, 1), std::nullopt);
}

TEST(DeviceChoiceTest, TheCpuIsUsedWhereItIsAskedFor) {
    EXPECT_EQ(choose_device(gpus(4), DeviceChoice::cpu, 0, 8), std::nullopt);
}

TEST(DeviceChoiceTest, AMissingGpuIsAnErrorThatSaysWhy) {
    try {
        choose_device(gpus(0), DeviceChoice::cuda, 0, 1);
        FAIL() << "no error";
    } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("(no driver)"));
    }
}

TEST(DeviceChoiceTest, AGpuThatCannotRunTheProgramIsAnErrorOfItsRankAlone) {
    VisibleCudaDevices visible = gpus(2);
    visible.devices[1].why_not = "it is too old";

    EXPECT_EQ(choose_device(visible, DeviceChoice::automatic, 0, 2), 0);
    EXPECT_EQ(choose_device(visible, DeviceChoice::cpu, 1, 2), std::nullopt);
    try {
        choose_device(visible, DeviceChoice::automatic, 1, 2);
        FAIL() << "no error";
    } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(),
                    testing::HasSubstr("GPU 1 (GPU) cannot run this hetseq (it is too old)"));
    }
}

TEST(DeviceChoiceTest, MoreLocalRanksThanGpusIsAnErrorOnEachOfThem) {
    for (int rank = 0; rank < 3; ++rank)
        EXPECT_THROW(choose_device(gpus(2), DeviceChoice::automatic, rank, 3), DeviceError);
}

}  // namespace
}  // namespace hetseq
