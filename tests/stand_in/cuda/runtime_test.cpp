// Of the stand-in itself: what it promises to the tests that use it.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime_fixture.hpp"
#include <gmock/gmock.h>

namespace hetseq::stand_in {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(StandInRuntimeDeathTest, AProgramThatMisusesCudaDoesNotEndWell) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // streams have threads
    const auto misuse = [] {
        const cudaStream_t stream = new_stream();
        cudaStreamDestroy(stream);
        cudaEventRecord(new_event(), stream);
        std::exit(0);
    };
    EXPECT_EXIT(misuse(), testing::ExitedWithCode(70), "misuse of CUDA or NCCL");
}

TEST_F(StandInRuntimeTest, AStreamRunsItsWorkInOrderAndInTheBackground) {
    const cudaStream_t stream = new_stream();
    std::vector<int> order;
    std::atomic<bool> may_go{false};

    launch(stream, [&] {
        while (!may_go)
            std::this_thread::sleep_for(1ms);
        order.push_back(1);
    });
    launch(stream, [&] { order.push_back(2); });
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    may_go = true;
    cudaStreamSynchronize(stream);

    EXPECT_THAT(order, ElementsAre(1, 2));
    EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
}

TEST_F(StandInRuntimeTest, StreamsRunAtOnceAndWaitForEvents) {
    const cudaStream_t first = new_stream(), second = new_stream();
    const cudaEvent_t event = new_event(cudaEventDisableTiming);
    std::atomic<bool> may_go{false}, first_ran{false}, second_ran{false};

    launch(first, [&] {
        while (!may_go)
            std::this_thread::sleep_for(1ms);
        first_ran = true;
    });
    cudaEventRecord(event, first);
    launch(second, [&] { may_go = true; });  // so they run at once
    cudaStreamWaitEvent(second, event, 0);
    launch(second, [&] { second_ran = first_ran.load(); });
    cudaStreamSynchronize(second);

    EXPECT_TRUE(second_ran);
}

TEST_F(StandInRuntimeTest, EventsTimeWhatIsBetweenThem) {
    const cudaStream_t stream = new_stream();
    const cudaEvent_t begin = new_event(), end = new_event();

    cudaEventRecord(begin, stream);
    launch(stream, [] { std::this_thread::sleep_for(5ms); });
    cudaEventRecord(end, stream);
    cudaEventSynchronize(end);

    float ms = 0;
    EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaSuccess);
    EXPECT_GE(ms, 5);
}

TEST_F(StandInRuntimeTest, ADestroyedStreamTakesNoWork) {
    const cudaStream_t stream = new_stream();
    cudaStreamDestroy(stream);

    EXPECT_EQ(cudaEventRecord(new_event(), stream), cudaErrorInvalidResourceHandle);

    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("on a stream that was destroyed")));
}

TEST_F(StandInRuntimeTest, AnEventWithoutTimingHasNoTime) {
    const cudaEvent_t event = new_event(cudaEventDisableTiming);
    cudaEventRecord(event, nullptr);

    float ms = 0;
    EXPECT_EQ(cudaEventElapsedTime(&ms, event, event), cudaErrorInvalidResourceHandle);

    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("without timing")));
}

TEST_F(StandInRuntimeTest, AnAsynchronousCopyNeedsPinnedMemory) {
    void* device = nullptr;
    void* pinned = nullptr;
    cudaMalloc(&device, 64);
    cudaHostAlloc(&pinned, 64, 0);
    char pageable[64] = {};

    cudaMemcpyAsync(device, pinned, 64, cudaMemcpyDefault, nullptr);
    EXPECT_THAT(take_misuses(), IsEmpty());
    cudaMemcpyAsync(device, pageable, 64, cudaMemcpyDefault, nullptr);
    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("neither a device's nor pinned")));

    cudaFree(device);
    cudaFreeHost(pinned);
}

TEST_F(StandInRuntimeTest, DeviceMemoryRunsOutAtItsSizeAndOnDemand) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, machine().memory + 1), cudaErrorMemoryAllocation);
    fail_allocation_after(1);
    EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
    cudaFree(memory);
    EXPECT_EQ(cudaMalloc(&memory, 64), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMalloc(&memory, 64), cudaErrorMemoryAllocation);
    fail_allocation_after(-1);
    EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
    cudaFree(memory);
    EXPECT_EQ(used_memory(), 0);
}

}  // namespace
}  // namespace hetseq::stand_in
