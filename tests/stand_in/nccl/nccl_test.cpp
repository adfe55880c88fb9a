// What the stand-in for NCCL refuses, and what a group is.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"

#include "stand_in/nccl/stand_in_nccl.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq::stand_in {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A communicator of all ranks, a stream, and device memory that is filled with the rank.
class StandInNcclTest : public testing::Test {
protected:
    static constexpr std::size_t count = 600;

    void SetUp() override {
        network() = {};
        take_misuses();
        cudaSetDevice(world_.rank());
        cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0);
        void* memory = nullptr;
        cudaMalloc(&memory, count * sizeof(float));
        values_ = static_cast<float*>(memory);
        const std::vector<float> own(count, static_cast<float>(world_.rank()));
        cudaMemcpy(values_, own.data(), count * sizeof(float), cudaMemcpyHostToDevice);
        ncclUniqueId id{};
        std::string bytes;
        if (world_.rank() == 0) {
            ncclGetUniqueId(&id);
            bytes.assign(id.internal, sizeof id.internal);
        }
        world_.broadcast(bytes, 0).copy(id.internal, sizeof id.internal);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        ncclCommInitRankConfig(&comm_, world_.size(), id, world_.rank(), &config);
        EXPECT_EQ(wait(), ncclSuccess);
    }
    void TearDown() override {
        network() = {};
        ncclCommAbort(comm_);
        cudaStreamSynchronize(stream_);
        cudaStreamDestroy(stream_);
        cudaFree(values_);
        take_misuses();
    }

    // Until the last call is done.
    ncclResult_t wait() const {
        ncclResult_t state = ncclInProgress;
        while (ncclCommGetAsyncError(comm_, &state) == ncclSuccess && state == ncclInProgress)
            std::this_thread::sleep_for(std::chrono::microseconds{100});
        return state;
    }
    ncclResult_t reduce(std::size_t begin, std::size_t length, int root) const {
        float* const part = values_ + begin;
        return ncclReduce(part, part, length, ncclFloat32, ncclSum, root, comm_, stream_);
    }
    std::vector<float> result() const {
        cudaStreamSynchronize(stream_);
        std::vector<float> host(count);
        cudaMemcpy(host.data(), values_, count * sizeof(float), cudaMemcpyDeviceToHost);
        return host;
    }
    // Once the stream has done its work.
    std::vector<std::string> misuses() const {
        cudaStreamSynchronize(stream_);
        return take_misuses();
    }
    float sum() const { return static_cast<float>(world_.size() * (world_.size() - 1)) / 2; }

    HostComm world_ = test::world();
    ncclComm_t comm_ = nullptr;
    cudaStream_t stream_ = nullptr;
    float* values_ = nullptr;
};

TEST_F(StandInNcclTest, AGroupIsLaunchedByItsEnd) {
    const long groups = calls("a group");
    ncclGroupStart();
    for (int root = 0; root < world_.size(); ++root)
        EXPECT_EQ(reduce(static_cast<std::size_t>(root) * 10, 10, root), ncclSuccess);
    EXPECT_THAT(result(), Each(static_cast<float>(world_.rank())));

    EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
    EXPECT_EQ(wait(), ncclSuccess);

    const std::vector<float> all = result();
    for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(
            all[i],
            static_cast<int>(i) / 10 == world_.rank() ? sum() : static_cast<float>(world_.rank()));
    EXPECT_EQ(calls("a group"), groups + 1);
    EXPECT_THAT(misuses(), IsEmpty());
}

TEST_F(StandInNcclTest, AGroupWithACallThatFailsLaunchesNothing) {
    ncclGroupStart();
    EXPECT_EQ(reduce(0, 10, 0), ncclSuccess);
    network().call_result = ncclSystemError;
    EXPECT_EQ(reduce(10, 10, 0), ncclSystemError);
    network().call_result = ncclSuccess;

    EXPECT_EQ(ncclGroupEnd(), ncclSystemError);

    EXPECT_THAT(result(), Each(static_cast<float>(world_.rank())));
    EXPECT_THAT(misuses(), IsEmpty());
}

TEST_F(StandInNcclTest, AGroupMustHaveBegun) {
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);

    EXPECT_THAT(misuses(), ElementsAre(HasSubstr("ncclGroupEnd without ncclGroupStart")));
}

TEST_F(StandInNcclTest, CallsOfAGroupShareNoMemoryThatOneWrites) {
    ncclGroupStart();
    reduce(0, 10, 0);
    reduce(9, 10, 0);
    ncclGroupEnd();
    wait();

    // A rank that is no root writes to nothing.
    if (world_.rank() == 0)
        EXPECT_THAT(misuses(), ElementsAre(HasSubstr("write to the same memory")));
    else
        EXPECT_THAT(misuses(), IsEmpty());
}

TEST_F(StandInNcclTest, AGroupIsOfOneStream) {
    cudaStream_t other = nullptr;
    cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, 0);
    ncclGroupStart();
    reduce(0, 10, 0);

    EXPECT_EQ(ncclBroadcast(values_, values_, 10, ncclUint8, 0, comm_, other), ncclInvalidUsage);

    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    EXPECT_THAT(misuses(), ElementsAre(HasSubstr("several communicators or streams")));
    cudaStreamDestroy(other);
}

TEST_F(StandInNcclTest, AGroupHasAtMost2048Calls) {
    ncclGroupStart();
    for (int i = 0; i < 2048; ++i)
        EXPECT_EQ(reduce(0, 0, 0), ncclSuccess);

    EXPECT_EQ(reduce(0, 0, 0), ncclInvalidUsage);

    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    EXPECT_THAT(misuses(), ElementsAre(HasSubstr("more than 2,048")));
}

TEST_F(StandInNcclTest, NoCommunicatorEndsWithinAGroup) {
    ncclGroupStart();
    ncclCommFinalize(comm_);
    ncclGroupEnd();

    EXPECT_THAT(misuses(), ElementsAre(HasSubstr("ncclCommFinalize within a group")));
}

TEST_F(StandInNcclTest, ARootIsARank) {
    EXPECT_EQ(reduce(0, 10, world_.size()), ncclInvalidArgument);
    EXPECT_EQ(ncclBroadcast(values_, values_, 10, ncclUint8, -1, comm_, stream_),
              ncclInvalidArgument);

    EXPECT_THAT(
        misuses(),
        ElementsAre(HasSubstr("root " + std::to_string(world_.size())), HasSubstr("root -1")));
}

TEST_F(StandInNcclTest, APartInPlaceIsTheRanksOwn) {
    const std::size_t part = 20;
    float* const wrong = values_ + static_cast<std::size_t>(world_.rank()) * part + 1;

    ncclReduceScatter(values_, wrong, part, ncclFloat32, ncclSum, comm_, stream_);
    wait();
    ncclAllGather(wrong, values_, part, ncclFloat32, comm_, stream_);
    wait();

    EXPECT_THAT(
        misuses(),
        ElementsAre(HasSubstr("a reduce-scatter in place"), HasSubstr("an all-gather in place")));
}

TEST_F(StandInNcclTest, RanksAskForTheSame) {
    if (world_.size() == 1)
        GTEST_SKIP() << "takes two ranks";
    const bool is_first = world_.rank() == 0;

    reduce(0, is_first ? 10 : 11, 0);
    wait();
    EXPECT_THAT(misuses(), ElementsAre(HasSubstr("unlike on other ranks: here a reduction of 1")));
    reduce(0, 10, is_first ? 0 : 1);
    wait();
    EXPECT_THAT(misuses(), ElementsAre(HasSubstr("unlike on other ranks")));
    if (is_first)
        ncclAllGather(values_, values_, 10, ncclFloat32, comm_, stream_);
    else
        ncclBroadcast(values_, values_, 10, ncclFloat32, 0, comm_, stream_);
    wait();
    EXPECT_THAT(misuses(), Contains(HasSubstr("unlike on other ranks")));
    ncclGroupStart();
    reduce(0, 10, 0);
    if (is_first)
        reduce(10, 10, 0);
    ncclGroupEnd();
    wait();
    EXPECT_THAT(misuses(), ElementsAre(HasSubstr("unlike on other ranks")));
    EXPECT_THAT(result(), Each(static_cast<float>(world_.rank())));
}

}  // namespace
}  // namespace hetseq::stand_in
