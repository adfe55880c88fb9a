#include <chrono>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "hetseq/comm/mpi/mpi_handle.hpp"

#include "comm/mpi/all_reduce.hpp"
#include "test_world.hpp"

namespace hetseq {
namespace {

// What is exact in any order: whole numbers below 2^24.
at::Tensor whole_numbers(int rank, std::int64_t count) {
    return at::arange(count, at::kFloat).remainder(997) * (rank + 1);
}

class RingAllReduceTest : public testing::TestWithParam<std::int64_t> {};

INSTANTIATE_TEST_SUITE_P(Sizes,
                         RingAllReduceTest,
                         testing::Values(0, 1, 3, 64, 1025, 30011, 250007));

TEST_P(RingAllReduceTest, IsTheSumWhateverTheMessages) {
    const HostComm world = test::world();
    const int n = world.size();
    const std::atomic<bool> abandoned = false;
    Scratch scratch;

    for (const std::size_t message_bytes : {256U, 61440U, 131072U}) {
        at::Tensor tensor = whole_numbers(world.rank(), GetParam());
        Progress progress{std::chrono::minutes{10}, abandoned, "the other ranks"};
        ring_all_reduce(mpi_handle(world),
                        tensor.mutable_data_ptr<float>(),
                        static_cast<std::size_t>(tensor.numel()),
                        message_bytes,
                        scratch,
                        progress);
        EXPECT_TRUE(at::equal(tensor, whole_numbers(n * (n + 1) / 2 - 1, GetParam())))
            << message_bytes;
    }
}

}  // namespace
}  // namespace hetseq
