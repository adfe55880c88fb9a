#include "hetseq/data/loading/loader.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "hetseq/data/corpus.hpp"

#include "data/epoch_reader.hpp"
#include "data/error_text.hpp"
#include "data/generated_corpus.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::BatchReader;
using test::bert_like_schema;
using test::thrown_by;
using testing::Each;
using testing::HasSubstr;

class LoaderTest : public testing::Test {
protected:
    static CorpusOptions options(IoMode io = IoMode::collective) {
        return {.shuffle_blocks = 2, .block_length = 7, .cache_mb = 1, .io = io};
    }

    HostComm world_ = test::world();
    test::SharedFolder folder_{world_};
};

// Two epochs; every sample twice, every value by its formula.
void expect_two_epochs(const HostComm& world, Corpus& corpus, std::int64_t batch_size) {
    BatchReader reader{world, corpus, BatchReader::options(), batch_size};
    for (std::int64_t k = 0; k < 2 * reader.batches_per_epoch(); ++k)
        reader.step();
    EXPECT_THAT(reader.visits(), Each(2));
}

TEST_F(LoaderTest, EverySampleOnceAnEpochWithItsOwnRows) {
    test::write_bert_like_corpus(world_, folder_, {0, 17, 40, 1, 0, 33});
    for (const IoMode io : {IoMode::collective, IoMode::independent, IoMode::serial}) {
        for (const bool threads : {true, false}) {
            SCOPED_TRACE(testing::Message() << "io " << int(io) << ", threads " << threads);
            DataContext context{world_, threads};
            Corpus corpus{context, folder_.path(), bert_like_schema(), options(io)};
            for (const std::int64_t batch_size : {5, 64})
                expect_two_epochs(world_, corpus, batch_size);
        }
    }
}

TEST_F(LoaderTest, ContiguousDatasetsReadTheSame) {
    test::write_bert_like_corpus(world_, folder_, {50, 20}, test::Storage::contiguous);
    DataContext context{world_, true};
    Corpus corpus{context, folder_.path(), bert_like_schema(), options()};

    expect_two_epochs(world_, corpus, 6);
}

TEST_F(LoaderTest, FewerSamplesThanRanks) {
    test::write_bert_like_corpus(world_, folder_, {2});
    DataContext context{world_, true};
    Corpus corpus{context, folder_.path(), bert_like_schema(), options()};

    expect_two_epochs(world_, corpus, 1);
}

TEST_F(LoaderTest, ACorpusThatFitsIsReadOnce) {
    test::write_bert_like_corpus(world_, folder_, {40, 60});
    DataContext context{world_, true};
    Corpus corpus{context, folder_.path(), bert_like_schema(), options()};

    expect_two_epochs(world_, corpus, 9);
    expect_two_epochs(world_, corpus, 9);

    EXPECT_EQ(corpus.blocks_read(), 15);  // of 7 samples, for 100
}

// 1 MiB holds two blocks of 4,500 samples (101 bytes each) and no third.
constexpr std::int64_t long_block = 4500;

TEST_F(LoaderTest, ACacheOfTwoBlocksServesTrainingAndValidation) {
    test::write_bert_like_corpus(world_, folder_, {9000, 11000}, test::Storage::contiguous);
    for (const bool threads : {true, false}) {
        for (const std::int64_t shuffle_blocks : {1, 2}) {
            DataContext context{world_, threads};
            const CorpusOptions small{
                .shuffle_blocks = shuffle_blocks, .block_length = long_block, .cache_mb = 1};
            Corpus training{context, folder_.path(), bert_like_schema(), small};
            Corpus validation{context, folder_ / "shard-00000.h5", bert_like_schema(), small};
            ASSERT_EQ(std::lround(static_cast<double>(training.cache_bytes()) / (long_block * 101)),
                      2);
            BatchReader train{world_, training, BatchReader::options(), 1500};
            BatchReader valid{world_, validation, BatchReader::options(Shuffle::no), 2000, 0};
            BatchReader again{world_, training, BatchReader::options(Shuffle::no), 4000, 1};

            for (std::int64_t k = 0; k < train.batches_per_epoch(); ++k) {
                train.step();
                if (k % 4 == 2) {
                    for (std::int64_t i = 0; i < valid.batches_per_epoch(); ++i)
                        valid.step();
                    again.step();
                }
            }

            EXPECT_THAT(train.visits(), Each(1));
            EXPECT_THAT(valid.visits(), Each(3));
        }
    }
}

TEST_F(LoaderTest, TooSmallACacheSaysHowMuchIsNeeded) {
    test::write_bert_like_corpus(world_, folder_, {20000}, test::Storage::contiguous);
    DataContext context{world_, true};

    const auto error = thrown_by([&] {
        Corpus(context,
               folder_.path(),
               bert_like_schema(),
               {.shuffle_blocks = 3, .block_length = long_block, .cache_mb = 1});
    });

    EXPECT_EQ(error.code, ExitCode::config);
    EXPECT_THAT(error.text,
                HasSubstr("--cache-mb 1 is too little (3 blocks of 4500 samples are mixed at once "
                          "and need 2 MiB)"));
}

TEST_F(LoaderTest, DestroyedWithRequestsOutstanding) {
    test::write_bert_like_corpus(world_, folder_, {9000, 11000}, test::Storage::contiguous);
    for (const bool threads : {true, false}) {
        for (const int taken : {0, 1, 3}) {
            DataContext context{world_, threads};
            Corpus corpus{context,
                          folder_.path(),
                          bert_like_schema(),
                          {.shuffle_blocks = 1, .block_length = long_block, .cache_mb = 1}};
            BatchReader reader{world_, corpus, BatchReader::options(), 6000, 4};
            for (int k = 0; k < taken; ++k)
                reader.step();
            for (int k = 0; k < 4; ++k)
                reader.request();
        }
    }
    SUCCEED() << "nothing hangs";
}

TEST_F(LoaderTest, RecutKeepsSamplesAndWeights) {
    test::write_bert_like_corpus(world_, folder_, {30});
    DataContext context{world_, true};
    Corpus corpus{context, folder_.path(), bert_like_schema(), options()};
    BatchReader reader{world_, corpus, BatchReader::options(), 30};
    reader.request();
    LoadedShare share = reader.take();
    std::vector<at::Tensor> before;
    for (const MicroBatch& batch : share.micro_batches())
        before.push_back(batch.sample_ids);
    const std::vector<double> weights = share.weights();

    share.recut({.samples = 1});

    EXPECT_EQ(std::ssize(share.micro_batches()), share.samples());
    EXPECT_EQ(share.weights(), weights);
    test::expect_formula_rows(share);
    std::vector<at::Tensor> after;
    for (const MicroBatch& batch : share.micro_batches())
        after.push_back(batch.sample_ids);
    if (share.samples() > 0) {
        EXPECT_TRUE(at::equal(at::cat(before), at::cat(after)));
    }
}

TEST_F(LoaderTest, AnEmptyShareHasNoMicroBatchesAndZeroWeights) {
    test::write_bert_like_corpus(world_, folder_, {30});
    DataContext context{world_, true};
    Corpus corpus{context, folder_.path(), bert_like_schema(), options()};
    const test::EchoCollator collator;
    Loader loader{corpus, collator, {.loss_terms = 2}};
    std::vector<Slice> slices(static_cast<std::size_t>(world_.size()), Slice{0, 0});

    loader.request({.begin = 0, .end = 0}, slices, {});
    const LoadedShare share = loader.take();

    EXPECT_TRUE(share.micro_batches().empty());
    EXPECT_EQ(share.weights(), (std::vector<double>{0, 0}));
    EXPECT_EQ(share.units(), 0);
}

TEST_F(LoaderTest, MicroBatchesCarryTheirSamplesWhateverTheCollator) {
    test::write_bert_like_corpus(world_, folder_, {30});
    DataContext context{world_, true};
    Corpus corpus{context, folder_.path(), bert_like_schema(), options()};
    const test::EchoCollator collator;
    Loader loader{corpus, collator, {.shuffle = Shuffle::no, .loss_terms = 2}};
    const GlobalBatch batch{.begin = 0, .end = 30};
    const auto slices = cut_by_rank(batch, test::split(30, test::uneven_weights(world_.size())));
    const Slice own = slices[static_cast<std::size_t>(world_.rank())];

    loader.request(batch, slices, {.samples = 4});
    const LoadedShare share = loader.take();

    std::int64_t next = own.begin;
    for (const MicroBatch& part : share.micro_batches()) {
        EXPECT_EQ(part.samples, std::min<std::int64_t>(part.samples, 4));
        EXPECT_EQ(part.units, part.samples);
        ASSERT_EQ(part.sample_ids.numel(), part.samples);
        for (std::int64_t i = 0; i < part.samples; ++i)
            EXPECT_EQ(part.sample_ids[i].item<std::int64_t>(), next++);
    }
    EXPECT_EQ(next, own.end);
}

/// Gives what it is told to.
class WrongCollator final : public Collator {
public:
    explicit WrongCollator(MicroBatch result) : result_{std::move(result)} {}
    MicroBatch collate(const TensorDict&, const at::Tensor&) const override { return result_; }

private:
    MicroBatch result_;
};

TEST_F(LoaderTest, ACollatorsMistakeIsNamed) {
    test::write_bert_like_corpus(world_, folder_, {30});
    DataContext context{world_, true};
    Corpus corpus{context, folder_.path(), bert_like_schema(), options()};
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::pair<MicroBatch, std::string> cases[] = {
        {{.tensors = {}, .weights = {1}}, "gave 1 weights for a micro-batch, and the model has 2"},
        {{.tensors = {}, .weights = {1, 2, 3}}, "gave 3 weights"},
        {{.tensors = {}, .weights = {1, nan}}, "gave a weight of nan"},
        {{.tensors = {}, .weights = {-1, 1}}, "gave a weight of -1"},
        {{.tensors = {{"ids", at::Tensor()}}, .weights = {1, 1}}, "no tensor in host memory"}};
    for (const auto& [result, text] : cases) {
        const WrongCollator collator{result};
        Loader loader{corpus, collator, {.loss_terms = 2}};
        const GlobalBatch batch{.begin = 0, .end = 30};
        const std::vector<std::int64_t> even(static_cast<std::size_t>(world_.size()), 1);

        loader.request(batch, cut_by_rank(batch, test::split(30, even)), {.samples = 4});
        const auto thrown = thrown_by([&] { loader.take(); });

        EXPECT_EQ(thrown.code, ExitCode::config);
        EXPECT_THAT(thrown.text, HasSubstr(text));
    }
}

class ThrowingCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict&, const at::Tensor&) const override {
        throw BadData("this collator refuses", "as it should");
    }
};

TEST_F(LoaderTest, AnExceptionOfTheCollatorSurfacesInTake) {
    test::write_bert_like_corpus(world_, folder_, {30});
    for (const bool threads : {true, false}) {
        DataContext context{world_, threads};
        Corpus corpus{context, folder_.path(), bert_like_schema(), options()};
        const ThrowingCollator collator;
        Loader loader{corpus, collator, {}};
        const GlobalBatch batch{.begin = 0, .end = 30};
        const std::vector<std::int64_t> even(static_cast<std::size_t>(world_.size()), 1);
        const auto slices = cut_by_rank(batch, test::split(30, even));

        loader.request(batch, slices, {.samples = 4});
        loader.request(batch, slices, {.samples = 4});

        EXPECT_THAT(thrown_by([&] { loader.take(); }).text, HasSubstr("this collator refuses"));
        EXPECT_THAT(thrown_by([&] { loader.take(); }).text, HasSubstr("this collator refuses"));
    }
}

}  // namespace
}  // namespace hetseq
