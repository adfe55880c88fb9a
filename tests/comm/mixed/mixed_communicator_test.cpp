// Ranks whose devices NCCL alone cannot join, over the stand-ins.
#include <chrono>
#include <stdexcept>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/communicator.hpp"

#include "comm/mixed/layouts.hpp"
#include "stand_in/nccl/stand_in_nccl.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using namespace std::chrono_literals;
using stand_in::network;
using test::cpu;
using test::Layout;
using testing::HasSubstr;

class MixedCommunicatorTest : public test::LayoutTest {
protected:
    // All ranks' tensors are one rank's, bit for bit.
    void expect_same_bits(const at::Tensor& tensor) const {
        const at::Tensor host = tensor.cpu();
        const std::string own(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
        EXPECT_EQ(world_.broadcast(own, world_.size() - 1), own);
    }
};

// All ranks can compute the values of any rank.
at::Tensor values_of(int rank, std::int64_t count, at::ScalarType type) {
    const at::Tensor places = at::arange(count, at::kDouble);
    return at::sin(places * (rank + 1) + rank).to(type);
}

TEST_P(MixedCommunicatorTest, SumsHaveTheSameBitsOnAllRanks) {
    const auto communicator = make(GetParam());
    ASSERT_EQ(communicator->rank(), world_.rank());
    ASSERT_EQ(communicator->size(), world_.size());
    for (const at::ScalarType type : {at::kFloat, at::kDouble})
        for (const std::int64_t count : {0, 1, 1000, 700001}) {
            const at::Tensor tensor =
                values_of(world_.rank(), count, type).to(communicator->device());
            at::Tensor expected = at::zeros({count}, at::kDouble);
            for (int rank = 0; rank < world_.size(); ++rank)
                expected += values_of(rank, count, at::kDouble);

            communicator->all_reduce_sum(tensor);

            EXPECT_TRUE(at::allclose(tensor.cpu().to(at::kDouble), expected, 1e-6, 1e-6));
            expect_same_bits(tensor);
        }
}

TEST_P(MixedCommunicatorTest, ManyInFlightCompleteInOrder) {
    const auto communicator = make(GetParam());
    std::vector<at::Tensor> tensors;
    std::vector<std::unique_ptr<Work>> works;
    for (int i = 0; i < 20; ++i) {
        tensors.push_back(at::full({10000}, static_cast<float>(i)).to(communicator->device()));
        works.push_back(communicator->start_all_reduce_sum(tensors.back()));
    }

    works.back()->wait_then([] {});

    for (std::size_t i = 0; i < works.size(); ++i) {
        EXPECT_TRUE(works[i]->done());
        EXPECT_TRUE(
            tensors[i].cpu().equal(at::full({10000}, static_cast<float>(i) * world_.size())));
    }
}

TEST_P(MixedCommunicatorTest, SumsComeAfterTheStreamsWorkAndBeforeWhatFollows) {
    const auto communicator = make(GetParam());
    const at::Tensor values =
        at::empty({1000}, at::TensorOptions(at::kFloat).device(communicator->device()));
    auto* const data = values.mutable_data_ptr<float>();
    const auto fill = [data] {
        std::this_thread::sleep_for(5ms);
        std::fill_n(data, 1000, 1.0F);
    };
    if (values.is_cuda())
        stand_in::launch(c10::cuda::getCurrentCUDAStream(values.device().index()).stream(),
                         "fill",
                         {stand_in::writes(data, 1000)},
                         fill);
    else
        fill();

    at::Tensor after;
    communicator->start_all_reduce_sum(values)->wait_then([&] { after = values + 1; });

    EXPECT_TRUE(after.cpu().equal(at::full({1000}, 1.0F + static_cast<float>(world_.size()))));
}

TEST_P(MixedCommunicatorTest, WorksTellTheirTimesAndWhenTheyAreDone) {
    const auto communicator = make(GetParam());
    const at::Tensor values = at::ones({1000}).to(communicator->device());

    const auto work = communicator->start_all_reduce_sum(values);
    work->wait_then([] {});

    EXPECT_TRUE(work->done());
    EXPECT_GE(work->own_ms(), 0);
    EXPECT_LT(work->own_ms(), 20000);
}

TEST_P(MixedCommunicatorTest, BroadcastMakesAllTensorsTheRoots) {
    const auto communicator = make(GetParam());
    for (int root = 0; root < world_.size(); ++root) {
        const at::Tensor tensor =
            at::full({1000}, world_.rank(), at::kLong).to(communicator->device());
        communicator->broadcast(tensor, root);
        EXPECT_TRUE((tensor.cpu() == root).all().item<bool>()) << "from rank " << root;
    }
}

// The last rank comes only when the others have gone on.
TEST_P(MixedCommunicatorTest, NoStartWaitsForOtherRanks) {
    const auto communicator = make(GetParam());
    const at::Tensor values = at::ones({3, 1000}).to(communicator->device());
    std::vector<std::unique_ptr<Work>> works;
    const auto start_all = [&] {
        for (int i = 0; i < 3; ++i)
            works.push_back(communicator->start_all_reduce_sum(values[i]));
    };
    const bool is_last = world_.rank() == world_.size() - 1;

    if (!is_last)
        start_all();
    world_.barrier();
    if (is_last)
        start_all();

    works.back()->wait_then([] {});
    EXPECT_TRUE((values.cpu() == world_.size()).all().item<bool>());
}

TEST_P(MixedCommunicatorTest, BroadcastsGoInPieces) {
    const auto communicator = make(GetParam(), {.deadline = 20s, .largest_bytes = 100});
    const at::Tensor tensor =
        (at::arange(1001) + world_.rank()).to(communicator->device(), at::kLong);

    communicator->broadcast(tensor, 1);

    EXPECT_TRUE(tensor.cpu().equal(at::arange(1001) + 1));
}

TEST_P(MixedCommunicatorTest, ARankThatDoesNotComeEndsTheOthersAtTheirDeadline) {
    for (const int absent : {0, world_.size() - 1}) {
        const auto communicator = make(GetParam(), {.deadline = 1s, .largest_bytes = 1 << 20});
        if (world_.rank() != absent) {
            const at::Tensor values = at::ones({1000}).to(communicator->device());

            EXPECT_THROW(communicator->all_reduce_sum(values), CommError);
            EXPECT_THROW(communicator->all_reduce_sum(values), CommError);
        }
        world_.barrier();
    }
}

TEST_P(MixedCommunicatorTest, AnExceptionAbandonsWhatIsInFlight) {
    const auto begin = std::chrono::steady_clock::now();
    const bool is_last = world_.rank() == world_.size() - 1;
    try {
        const auto communicator = make(GetParam(), {.deadline = 60s, .largest_bytes = 1 << 20});
        const at::Tensor values = at::ones({1000}).to(communicator->device());
        std::unique_ptr<Work> work;
        if (!is_last)
            work = communicator->start_all_reduce_sum(values);
        throw std::runtime_error("what ends this rank");
    } catch (const std::runtime_error&) {
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
    }
    world_.barrier();
}

INSTANTIATE_TEST_SUITE_P(Layouts,
                         MixedCommunicatorTest,
                         testing::ValuesIn(test::all_layouts()),
                         test::name_of_layout);

class MixedStartTest : public MixedCommunicatorTest {};

TEST_P(MixedStartTest, ARankThatCannotStartEndsAll) {
    if (world_.size() == 1)
        GTEST_SKIP() << "needs two ranks";
    if (world_.rank() == 0)
        network().init_result = ncclSystemError;
    const auto begin = std::chrono::steady_clock::now();
    std::string error;

    try {
        make(GetParam(), {.join_deadline = 60s});
    } catch (const Error& caught) {
        error = caught.what();
    }

    EXPECT_THAT(error, HasSubstr("ncclCommInitRankConfig failed"));
    EXPECT_THAT(error, HasSubstr("[rank 0"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

INSTANTIATE_TEST_SUITE_P(Layouts,
                         MixedStartTest,
                         testing::Values(Layout{"GpusAndACpu", {0, cpu, 1, 2}},
                                         Layout{"TwoGpusForTwoEach", {0, 1, 0, 1}}),
                         test::name_of_layout);

}  // namespace
}  // namespace hetseq
