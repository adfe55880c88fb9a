#pragma once

#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <gtest/gtest.h>

#include "hetseq/comm/communicator.hpp"

#include "stand_in/nccl/stand_in_nccl.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq::test {

constexpr int cpu = -1;

/// The first ranks have these GPUs; fewer ranks run where there are fewer.
struct Layout {
    const char* name;
    std::vector<int> gpus;                     // each rank's, or `cpu`
    std::vector<int> versions = {0, 0, 0, 0};  // of NCCL: 0 is the usual one
};

inline void PrintTo(const Layout& layout, std::ostream* out) {
    *out << layout.name;
}

inline std::string name_of_layout(const testing::TestParamInfo<Layout>& info) {
    return info.param.name;
}

/// Of up to 4 ranks whose devices NCCL alone cannot join.
inline std::vector<Layout> all_layouts() {
    return {{"GpusAndACpu", {0, cpu, 1, 2}},
            {"CpusBeforeGpus", {cpu, 0, 1, cpu}},
            {"OneGpuForAll", {0, 0, 0, 0}},
            {"TwoGpusForTwoEach", {0, 1, 0, 1}},
            {"UnlikeVersions", {0, 1, 2, 3}, {22809, 22105, 22809, 22105}},
            {"AllAtOnce", {0, 1, 0, cpu}, {22809, 22105, 22809, 0}}};
}

/// A rank among them, over the stand-ins, whose misuse fails the test.
class LayoutTest : public testing::TestWithParam<Layout> {
protected:
    void SetUp() override {
        stand_in::network() = {};
        stand_in::take_misuses();
    }
    void TearDown() override {
        cudaDeviceSynchronize();  // an abandoned collective may still look at `network`
        stand_in::network() = {};
        EXPECT_THAT(stand_in::take_misuses(), testing::IsEmpty());
    }

    std::size_t rank() const { return static_cast<std::size_t>(world_.rank()); }
    at::Device device(const Layout& layout) const {
        const int gpu = layout.gpus[rank()];
        return gpu == cpu ? at::Device(at::kCPU)
                          : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(gpu));
    }
    std::unique_ptr<Communicator> make(const Layout& layout,
                                       const CommunicatorOptions& options = {
                                           .deadline = std::chrono::seconds{20},
                                           .join_deadline = std::chrono::seconds{20},
                                           .largest_bytes = 1 << 20}) {
        current_.reset_device(device(layout));
        if (layout.versions[rank()] != 0)
            stand_in::network().version = layout.versions[rank()];
        return make_communicator(world_, environment(), device(layout), options);
    }

    HostComm world_ = world();
    c10::OptionalDeviceGuard current_;  // as each rank's own is
};

}  // namespace hetseq::test
