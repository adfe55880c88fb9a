#include "hetseq/data/data_benchmark.hpp"

#include <gtest/gtest.h>

#include "data/generated_corpus.hpp"
#include "data/generated_ragged_corpus.hpp"
#include "test_world.hpp"

#include "hetseq/data/data_context.hpp"

namespace hetseq {
namespace {

TEST(DataBenchmarkTest, CountsWhatItReads) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    test::write_bert_like_corpus(world, folder, {100});
    DataContext context{world, true};

    const DataBenchmark result =
        benchmark_data(world,
                       context,
                       folder.path(),
                       test::bert_like_schema(),
                       {.corpus = {.block_length = 10}, .batch_size = 8, .repeats = 2});

    EXPECT_EQ(result.samples, 100);
    EXPECT_EQ(result.blocks, 10);
    EXPECT_GT(result.read_per_second, 0);
    EXPECT_GT(result.cached_per_second, 0);
}

TEST(DataBenchmarkTest, ReadsSamplesOfUnequalLengthToo) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    test::write_ragged_corpus(world, folder, {60, 40});
    DataContext context{world, true};

    const DataBenchmark result =
        benchmark_data(world,
                       context,
                       folder.path(),
                       test::ragged_schema(),
                       {.corpus = {.block_length = 10}, .batch_size = 8, .repeats = 1});

    EXPECT_EQ(result.samples, 100);
    EXPECT_GT(result.read_per_second, 0);
}

}  // namespace
}  // namespace hetseq
