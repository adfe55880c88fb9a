#include "hetseq/data/data_benchmark.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "hetseq/data/data_context.hpp"

#include "data/generated_corpus.hpp"
#include "data/generated_ragged_corpus.hpp"
#include "test_world.hpp"

namespace hetseq {
namespace {

// Batches of 8 samples a rank.
DataBenchmarkOptions small_batches(const HostComm& world, int repeats) {
    return {.corpus = {.block_length = 10},
            .batch = {.samples = 8 * world.size()},
            .capacities = std::vector<std::int64_t>(static_cast<std::size_t>(world.size()), 8),
            .repeats = repeats};
}

TEST(DataBenchmarkTest, CountsWhatItReads) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    test::write_bert_like_corpus(world, folder, {100});
    DataContext context{world, true};

    const DataBenchmark result = benchmark_data(
        world, context, folder.path(), test::bert_like_schema(), small_batches(world, 2));

    EXPECT_EQ(result.samples, 100);
    EXPECT_EQ(result.bytes,
              100 * (4 * test::sequence + test::sequence + 4 * test::predictions + 1));
    EXPECT_EQ(result.blocks, 10);
    EXPECT_GT(result.open_s, 0);
    EXPECT_GT(result.read_per_second, 0);
    EXPECT_GT(result.cached_per_second, 0);
    EXPECT_GT(result.read_cpu_s, 0);
    EXPECT_GT(result.cached_cpu_s, 0);
}

TEST(DataBenchmarkTest, ReadsSamplesOfUnequalLengthToo) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    test::write_ragged_corpus(world, folder, {60, 40});
    DataContext context{world, true};

    const DataBenchmark result = benchmark_data(
        world, context, folder.path(), test::ragged_schema(), small_batches(world, 1));

    EXPECT_EQ(result.samples, 100);
    EXPECT_EQ(result.bytes, test::sum_over(0, 100, [](std::int64_t sample) {
                  return 4 * test::source_length(sample) + (4 + 1) * test::target_length(sample) +
                         test::place_length(sample) + 8;
              }));
    EXPECT_GT(result.read_per_second, 0);
}

TEST(DataBenchmarkTest, LeavesLongSamplesOutAndBatchesByTokens) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    test::write_ragged_corpus(world, folder, {60, 40});
    DataContext context{world, true};
    DataBenchmarkOptions options = small_batches(world, 1);
    options.corpus.max_length = 30;
    options.corpus.skip_too_long = true;
    options.batch = {.units = 64};
    options.cap = {.tokens = 60};
    options.capacities.front() = 0;
    options.capacities.back() = 60;

    const DataBenchmark result =
        benchmark_data(world, context, folder.path(), test::ragged_schema(), options);

    EXPECT_EQ(result.samples, 99);  // without the one of 500 values
    EXPECT_GT(result.read_per_second, 0);
}

}  // namespace
}  // namespace hetseq
