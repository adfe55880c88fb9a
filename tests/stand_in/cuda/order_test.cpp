// Uses that nothing has put in order are reported, though they came in order this time.
#include <algorithm>

#include "runtime_fixture.hpp"

namespace hetseq::stand_in {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StandInOrderTest : public StandInRuntimeTest {
protected:
    void SetUp() override {
        cudaMalloc(&memory_, bytes);
        values_ = static_cast<char*>(memory_);
    }
    void TearDown() override {
        cudaFree(memory_);
        StandInRuntimeTest::TearDown();
    }

    static constexpr std::size_t bytes = 64;

    static void fill(cudaStream_t stream, const char* values, std::size_t count = bytes) {
        launch(stream, "fill", {writes(values, count)}, [] {});
    }
    static void sum(cudaStream_t stream, const char* values, std::size_t count = bytes) {
        launch(stream, "sum", {reads(values, count)}, [] {});
    }
    void let_second_wait_for_first() const {
        const cudaEvent_t event = new_event(cudaEventDisableTiming);
        cudaEventRecord(event, first_);
        cudaStreamWaitEvent(second_, event, 0);
    }

    void* memory_ = nullptr;
    const char* values_ = nullptr;
    cudaStream_t first_ = new_stream(), second_ = new_stream();
};

TEST_F(StandInOrderTest, AReaderThatDoesNotWaitForTheWriterIsReported) {
    fill(first_, values_);
    drain(first_);  // the program knows nothing of it
    sum(second_, values_);

    EXPECT_THAT(take_misuses(),
                ElementsAre(testing::MatchesRegex("sum on stream [0-9]+ reads memory that fill on "
                                                  "stream [0-9]+ writes, and has not waited .*")));
}

TEST_F(StandInOrderTest, AWriterThatDoesNotWaitForReadersAndWritersIsReported) {
    sum(first_, values_);
    fill(second_, values_);
    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("writes memory that sum on")));
    fill(first_, values_);
    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("writes memory that fill on")));
}

TEST_F(StandInOrderTest, ReadersNeedNoOrder) {
    sum(first_, values_);
    sum(second_, values_);
}

TEST_F(StandInOrderTest, AnEventPutsStreamsInOrder) {
    fill(first_, values_);
    let_second_wait_for_first();
    sum(second_, values_);
    fill(second_, values_);
}

TEST_F(StandInOrderTest, AnEventCoversWhatWasGivenBeforeIt) {
    let_second_wait_for_first();
    fill(first_, values_);
    sum(second_, values_);

    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("sum on stream")));
}

TEST_F(StandInOrderTest, OrderGoesThroughOtherStreams) {
    const cudaStream_t third = new_stream();
    fill(first_, values_);
    let_second_wait_for_first();
    const cudaEvent_t event = new_event(cudaEventDisableTiming);
    cudaEventRecord(event, second_);
    cudaStreamWaitEvent(third, event, 0);
    sum(third, values_);
}

TEST_F(StandInOrderTest, TheHostsWaitPutsAllLaterWorkInOrder) {
    fill(first_, values_);
    cudaStreamSynchronize(first_);
    sum(second_, values_);

    fill(second_, values_ + bytes);
    const cudaEvent_t event = new_event();
    cudaEventRecord(event, second_);
    while (cudaEventQuery(event) != cudaSuccess) {
    }
    sum(first_, values_ + bytes);

    fill(first_, values_ + bytes);
    cudaDeviceSynchronize();
    fill(second_, values_ + bytes);
}

TEST_F(StandInOrderTest, OnlyTheSameBytesCount) {
    fill(first_, values_, bytes / 2);
    fill(second_, values_ + bytes / 2, bytes / 2);
    sum(second_, values_ + bytes / 2, bytes / 2);
    EXPECT_THAT(take_misuses(), IsEmpty());

    sum(second_, values_ + bytes / 2 - 1, 1);
    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("sum on stream")));
}

TEST_F(StandInOrderTest, CopiesAreUses) {
    void* pinned = nullptr;
    cudaHostAlloc(&pinned, bytes, 0);
    cudaMemcpyAsync(memory_, pinned, bytes, cudaMemcpyDefault, first_);
    sum(second_, values_);
    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("that cudaMemcpyAsync on")));
    cudaDeviceSynchronize();
    cudaFreeHost(pinned);
}

TEST_F(StandInOrderTest, FreedMemoryIsNew) {
    fill(first_, values_);
    cudaFree(memory_);
    cudaMalloc(&memory_, bytes);
    sum(second_, static_cast<const char*>(memory_));
}

class StandInPinnedTest : public StandInOrderTest {
protected:
    void SetUp() override {
        StandInOrderTest::SetUp();
        void* pinned = nullptr;
        cudaHostAlloc(&pinned, bytes, 0);
        pinned_ = static_cast<char*>(pinned);
        std::fill_n(pinned_, bytes, 'a');
    }
    void TearDown() override {
        cudaDeviceSynchronize();
        cudaFreeHost(pinned_);
        StandInOrderTest::TearDown();
    }
    char read() const { return *static_cast<const volatile char*>(pinned_); }
    void write(char value) const { *static_cast<volatile char*>(pinned_) = value; }

    char* pinned_ = nullptr;
};

TEST_F(StandInPinnedTest, UseBeforeTheCopyIntoItWasWaitedForIsReported) {
    cudaMemcpyAsync(memory_, pinned_, bytes, cudaMemcpyDefault, first_);
    cudaMemcpyAsync(pinned_, memory_, bytes, cudaMemcpyDefault, first_);
    drain(first_);  // the program knows nothing of it

    EXPECT_EQ(read(), 'a');

    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("used before the copy into it")));
}

TEST_F(StandInPinnedTest, ChangesBeforeTheCopyOutOfItWasWaitedForAreReported) {
    cudaMemcpyAsync(memory_, pinned_, bytes, cudaMemcpyDefault, first_);
    EXPECT_EQ(read(), 'a');
    EXPECT_THAT(take_misuses(), IsEmpty());

    write('b');

    EXPECT_EQ(read(), 'b');
    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("changed before the copy out of it")));
}

TEST_F(StandInPinnedTest, AnEventThatWasWaitedForOpensIt) {
    cudaMemcpyAsync(memory_, pinned_, bytes, cudaMemcpyDefault, first_);
    cudaMemcpyAsync(pinned_, memory_, bytes, cudaMemcpyDefault, first_);
    const cudaEvent_t event = new_event(cudaEventDisableTiming);
    cudaEventRecord(event, first_);
    cudaEventSynchronize(event);

    EXPECT_EQ(read(), 'a');
    write('b');
}

TEST_F(StandInPinnedTest, OtherBytesOfThePageMayBeUsed) {
    cudaMemcpyAsync(memory_, pinned_ + 1, bytes - 1, cudaMemcpyDefault, first_);

    write('b');

    EXPECT_EQ(read(), 'b');
}

TEST_F(StandInPinnedTest, ACopyBeyondItsEndIsReported) {
    void* larger = nullptr;
    cudaMalloc(&larger, bytes + 1);

    cudaMemcpyAsync(larger, pinned_, bytes + 1, cudaMemcpyDefault, first_);

    EXPECT_THAT(take_misuses(), ElementsAre(HasSubstr("neither a device's nor pinned")));
    cudaFree(larger);
}

using StandInPinnedDeathTest = StandInPinnedTest;

TEST_F(StandInPinnedDeathTest, OtherFaultsAreNotTaken) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // streams have threads
    const auto crash = [this] {
        cudaMemcpyAsync(memory_, pinned_, bytes, cudaMemcpyDefault, first_);
        *static_cast<volatile char*>(nullptr) = 0;
    };
    EXPECT_DEATH(crash(), "");
}

}  // namespace
}  // namespace hetseq::stand_in
