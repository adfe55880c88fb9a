#pragma once

#include <ATen/Context.h>
#include <c10/core/Device.h>

namespace hetseq::test {

/// True if LibTorch finds a GPU here.
inline bool has_gpu() {
    return at::hasCUDA();
}

/// The first one.
inline at::Device gpu() {
    return at::Device(at::kCUDA, 0);
}

}  // namespace hetseq::test

/// In a test, or its SetUp: skips it where there is no GPU.
#define HETSEQ_NEEDS_GPU()          \
    if (!::hetseq::test::has_gpu()) \
    GTEST_SKIP() << "no GPU: LibTorch finds none on this machine"
