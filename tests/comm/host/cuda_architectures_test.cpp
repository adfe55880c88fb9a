#include "comm/host/cuda_architectures.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

// The rules: CUDA C++ programming guide, "Binary compatibility" and "PTX compatibility".
TEST(CudaArchitecturesTest, MachineCodeRunsOnItsGenerationFromItsNumberOn) {
    const std::string compiled = "75-real 80-real";
    for (const ComputeCapability& runs : {ComputeCapability{7, 5}, {8, 0}, {8, 6}, {8, 9}})
        EXPECT_TRUE(runs_on(compiled, runs)) << to_string(runs);
    for (const ComputeCapability& no : {ComputeCapability{6, 0}, {7, 0}, {9, 0}, {12, 0}})
        EXPECT_FALSE(runs_on(compiled, no)) << to_string(no);
}

TEST(CudaArchitecturesTest, PtxRunsOnAllThatAreNotOlder) {
    for (const std::string compiled : {"75-real 90", "90-virtual"}) {
        EXPECT_TRUE(runs_on(compiled, {9, 0}));
        EXPECT_TRUE(runs_on(compiled, {12, 0}));
        EXPECT_FALSE(runs_on(compiled, {8, 9}));
    }
}

TEST(CudaArchitecturesTest, CodeForOneArchitectureRunsThereAlone) {
    EXPECT_TRUE(runs_on("90a", {9, 0}));
    EXPECT_FALSE(runs_on("90a", {10, 0}));
}

}  // namespace
}  // namespace hetseq
