#include "hetseq/comm/reduce_benchmark.hpp"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "hetseq/comm/communicator.hpp"

#include "test_world.hpp"

namespace hetseq {
namespace {

TEST(ReduceBenchmarkTest, ReportsEachSizeAlikeOnAllRanks) {
    const HostComm world = test::world();
    const auto communicator = make_communicator(world, test::environment(), at::kCPU);

    const auto results = benchmark_all_reduce(
        world, *communicator, {.bytes = {4000, 1 << 20}, .repeats = 5, .warm_up = 1});

    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[0].bytes, 4000);
    EXPECT_EQ(results[1].bytes, 1 << 20);
    for (const ReduceBenchmark& result : results) {
        EXPECT_LE(result.own_ms.p10, result.own_ms.median);
        EXPECT_LE(result.own_ms.median, result.own_ms.p90);
        for (const double other : world.all_gather(result.own_ms.median))
            EXPECT_EQ(other, result.own_ms.median);
    }
}

TEST(ReduceBenchmarkTest, RatesFollowFromTheMedians) {
    const HostComm world = test::world();
    const auto communicator = make_communicator(world, test::environment(), at::kCPU);

    const auto results =
        benchmark_all_reduce(world, *communicator, {.bytes = {1 << 20}, .repeats = 3});

    const ReduceBenchmark& result = results.at(0);
    const double n = world.size();
    EXPECT_DOUBLE_EQ(result.algorithm_gb_s, (1 << 20) / (result.own_ms.median * 1e6));
    EXPECT_DOUBLE_EQ(result.bus_gb_s, result.algorithm_gb_s * 2 * (n - 1) / n);
    ASSERT_EQ(result.mpi_ms.has_value(), world.size() > 1);
    if (result.mpi_ms) {
        EXPECT_DOUBLE_EQ(result.ratio, result.mpi_ms->median / result.own_ms.median);
    }
}

}  // namespace
}  // namespace hetseq
