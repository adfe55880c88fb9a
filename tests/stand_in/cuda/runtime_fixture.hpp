#pragma once

#include <gtest/gtest.h>

#include "stand_in/cuda/stand_in_cuda.hpp"
#include <gmock/gmock.h>

namespace hetseq::stand_in {

inline cudaStream_t new_stream() {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
    return stream;
}

inline cudaEvent_t new_event(unsigned flags = cudaEventDefault) {
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, flags);
    return event;
}

/// Its tests take the reports that they expect.
class StandInRuntimeTest : public testing::Test {
protected:
    void TearDown() override { EXPECT_THAT(take_misuses(), testing::IsEmpty()); }
};

}  // namespace hetseq::stand_in
