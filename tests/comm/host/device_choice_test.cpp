#include "comm/host/device_choice.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto automatic = DeviceChoice::automatic;
constexpr auto cuda = DeviceChoice::cuda;
constexpr auto on_cpu = std::nullopt;

// A rank that sees these GPUs.
DeviceWish wish(DeviceChoice choice, std::vector<std::string> gpus) {
    return {choice, std::move(gpus)};
}

VisibleCudaDevices gpus(int count) {
    VisibleCudaDevices visible;
    for (int i = 0; i < count; ++i)
        visible.devices.push_back({"GPU", "GPU-" + std::to_string(i), {}, 1024, {}});
    if (count == 0)
        visible.why_none = "no driver";
    return visible;
}

TEST(ShareOutGpusTest, EachRankTakesItsOwn) {
    const DeviceWish any = wish(automatic, {"a", "b", "c"});
    EXPECT_THAT(share_out_gpus({any, any, any}), ElementsAre(0, 1, 2));
}

TEST(ShareOutGpusTest, ARankThatSeesOneGpuUsesIt) {
    EXPECT_THAT(share_out_gpus({wish(automatic, {"b"}), wish(automatic, {"a"})}),
                ElementsAre(0, 0));
}

TEST(ShareOutGpusTest, ARankThatSeesOneGpuComesFirst) {
    EXPECT_THAT(share_out_gpus({wish(automatic, {"a", "b"}), wish(automatic, {"a"})}),
                ElementsAre(1, 0));
}

TEST(ShareOutGpusTest, ARankThatMustHaveAGpuComesBeforeOneThatMay) {
    const std::vector<std::string> one{"a"};
    EXPECT_THAT(share_out_gpus({wish(automatic, one), wish(cuda, one)}), ElementsAre(on_cpu, 0));
}

TEST(ShareOutGpusTest, ARankWithoutAGpuOfItsOwnIsOnItsCpu) {
    const DeviceWish any = wish(automatic, {"a"});
    EXPECT_THAT(share_out_gpus({any, any, wish(automatic, {})}), ElementsAre(0, on_cpu, on_cpu));
}

TEST(ShareOutGpusTest, ARankOnItsCpuLeavesItsGpuToOthers) {
    const std::vector<std::string> both{"a", "b"};
    EXPECT_THAT(share_out_gpus({wish(DeviceChoice::cpu, both), wish(cuda, both), wish(cuda, both)}),
                ElementsAre(on_cpu, 0, 1));
}

TEST(ShareOutGpusTest, RanksThatMustHaveAGpuShareThemEvenly) {
    const DeviceWish any = wish(cuda, {"a", "b"});
    EXPECT_THAT(share_out_gpus({any, any, any, any}), ElementsAre(0, 1, 0, 1));
}

TEST(CheckedGpuTest, AMissingGpuIsAnErrorThatSaysWhy) {
    try {
        checked_gpu(on_cpu, cuda, gpus(0));
        FAIL() << "no error";
    } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(), HasSubstr("(no driver)"));
    }
    EXPECT_EQ(checked_gpu(on_cpu, automatic, gpus(0)), on_cpu);
}

TEST(CheckedGpuTest, AGpuThatCannotRunTheProgramIsAnErrorOfItsRankAlone) {
    VisibleCudaDevices visible = gpus(2);
    visible.devices[1].why_not = "it is too old";

    EXPECT_EQ(checked_gpu(0, automatic, visible), 0);
    try {
        checked_gpu(1, automatic, visible);
        FAIL() << "no error";
    } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(), HasSubstr("GPU 1 (GPU) cannot run this hetseq (it is too old)"));
    }
}

}  // namespace
}  // namespace hetseq
