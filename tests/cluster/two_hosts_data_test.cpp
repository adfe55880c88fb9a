// Runs as four ranks, three on one host and one on another (data_test.sh).
#include <cmath>

#include <gtest/gtest.h>

#include "hetseq/data/corpus.hpp"

#include "data/epoch_reader.hpp"
#include "data/generated_corpus.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::BatchReader;
using test::bert_like_schema;
using testing::Each;

// 1 MiB holds two blocks of 4,500 samples (101 bytes each) and no third.
constexpr std::int64_t long_block = 4500;
constexpr std::int64_t two_blocks_mb = 1;

class TwoHostsDataTest : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(world_.size(), 4);
        ASSERT_EQ(node_.size(), world_.rank() < 3 ? 3 : 1);
    }

    bool on_second_host() const { return node_.size() == 1; }

    // The first host holds two blocks, the second the whole corpus.
    CorpusOptions options(IoMode io, std::int64_t shuffle_blocks) const {
        return {.shuffle_blocks = shuffle_blocks,
                .block_length = long_block,
                .cache_mb = on_second_host() ? 16 : two_blocks_mb,
                .io = io};
    }

    // An epoch of training with three passes of validation and batches of another order between.
    void expect_every_sample(bool threads, const CorpusOptions& choice);

    HostComm world_ = test::world();
    HostComm node_ = world_.split_by_host();
    test::SharedFolder folder_{world_};
};

void TwoHostsDataTest::expect_every_sample(bool threads, const CorpusOptions& choice) {
    DataContext context{world_, threads};
    Corpus training{context, folder_.path(), bert_like_schema(), choice};
    Corpus validation{context, folder_ / "shard-00000.h5", bert_like_schema(), choice};
    ASSERT_EQ(std::lround(static_cast<double>(training.cache_bytes()) / (long_block * 101)),
              on_second_host() ? 5 : 2);
    BatchReader train{world_, training, BatchReader::options(), 1500};
    BatchReader valid{world_, validation, BatchReader::options(Shuffle::no), 2000, 0};

    for (std::int64_t k = 0; k < train.batches_per_epoch(); ++k) {
        train.step();
        if (k % 4 != 2)
            continue;
        for (std::int64_t i = 0; i < valid.batches_per_epoch(); ++i)
            valid.step();
    }

    EXPECT_THAT(train.visits(), Each(1));
    EXPECT_THAT(valid.visits(), Each(3));
}

TEST_F(TwoHostsDataTest, UnlikeCachesReadEverySampleOnce) {
    test::write_bert_like_corpus(world_, folder_, {9000, 0, 11000}, test::Storage::contiguous);
    for (const IoMode io : {IoMode::collective, IoMode::independent, IoMode::serial})
        for (const bool threads : {true, false})
            for (const std::int64_t shuffle_blocks : {1, 2}) {
                SCOPED_TRACE(testing::Message() << "io " << int(io) << ", threads " << threads
                                                << ", shuffle blocks " << shuffle_blocks);
                expect_every_sample(threads, options(io, shuffle_blocks));
            }
}

TEST_F(TwoHostsDataTest, TheHostThatHoldsAllReadsItOnce) {
    test::write_bert_like_corpus(world_, folder_, {9000, 11000}, test::Storage::contiguous);
    DataContext context{world_, true};
    Corpus corpus{context, folder_.path(), bert_like_schema(), options(IoMode::collective, 2)};
    BatchReader reader{world_, corpus, BatchReader::options(), 1500};

    for (std::int64_t k = 0; k < 3 * reader.batches_per_epoch(); ++k)
        reader.step();

    EXPECT_THAT(reader.visits(), Each(3));
    if (on_second_host())
        EXPECT_EQ(corpus.blocks_read(), 5);
    else
        EXPECT_GT(corpus.blocks_read(), 5);
}

}  // namespace
}  // namespace hetseq
