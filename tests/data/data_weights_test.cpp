#include "hetseq/data/data_weights.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/data/corpus_plan.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/data/loading/loader.hpp"

#include "data/epoch_reader.hpp"
#include "data/error_text.hpp"
#include "data/generated_corpus.hpp"
#include "data/generated_ragged_corpus.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Hands nothing on but the samples' numbers.
class CountingCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict&, const at::Tensor& sample_ids) const override {
        MicroBatch batch;
        batch.weights = {static_cast<double>(sample_ids.numel())};
        return batch;
    }
};

// The samples of the corpus, a set after the other, and how much an epoch takes of each.
struct ExpectedSet {
    std::int64_t samples = 0;
    std::int64_t samples_of_epoch = 0;
};

class DataWeightsTest : public testing::Test {
protected:
    std::string names(std::size_t shards) const {
        std::string text;
        for (std::size_t i = 0; i < shards; ++i)
            text += (i > 0 ? "," : "") + (folder_ / test::shard_name(i));
        return text;
    }

    CorpusOptions options(const std::string& weights) const {
        return {.data_weights = data_weights(weights),
                .shuffle_blocks = 3,
                .block_length = 8,
                .cache_mb = 1};
    }

    // How often each sample was taken in `epoch`, over all ranks. Some batches are under way.
    std::vector<std::int64_t> visits(Corpus& corpus, const BatchSize& size, std::int64_t epoch) {
        const CountingCollator collator;
        Loader loader(corpus, collator, {.seed = 8, .loss_terms = 1});
        const BatchPlan plan = make_batch_plan(corpus, size, 8);
        std::vector<std::int64_t> found(static_cast<std::size_t>(corpus.samples()), 0);
        const std::int64_t begin = epoch * plan.batches_per_epoch();
        const std::int64_t end = begin + plan.batches_per_epoch();
        std::int64_t requested = begin;
        for (std::int64_t update = begin; update < end; ++update) {
            for (; requested < std::min(update + 3, end); ++requested) {
                const GlobalBatch batch = plan.batch(requested);
                EXPECT_GT(batch.size(), 0);
                const auto shares = test::split(batch.size(), test::uneven_weights(world_.size()));
                loader.request(batch, cut_by_rank(batch, shares), {.samples = 5});
            }
            const LoadedShare share = loader.take();
            for (const MicroBatch& batch : share.micro_batches())
                for (std::int64_t i = 0; i < batch.samples; ++i)
                    ++found[static_cast<std::size_t>(batch.sample_ids[i].item<std::int64_t>())];
        }
        world_.all_reduce(found, ReduceOp::sum);
        return found;
    }

    void expect_epochs(Corpus& corpus,
                       const BatchSize& size,
                       const std::vector<ExpectedSet>& sets) {
        for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
            const std::vector<std::int64_t> found = visits(corpus, size, epoch);
            auto begin = found.begin();
            for (const ExpectedSet& set : sets) {
                const auto end = begin + set.samples;
                EXPECT_EQ(std::accumulate(begin, end, std::int64_t{0}), set.samples_of_epoch);
                EXPECT_GE(*std::min_element(begin, end), set.samples_of_epoch / set.samples);
                EXPECT_LE(*std::max_element(begin, end),
                          (set.samples_of_epoch + set.samples - 1) / set.samples);
                begin = end;
            }
            EXPECT_EQ(begin, found.end());
        }
    }

    HostComm world_ = test::world();
    test::SharedFolder folder_{world_};
    DataContext context_{world_, test::environment().thread_support() == ThreadSupport::multiple};
};

TEST_F(DataWeightsTest, AreNumbersAboveZeroUpToAThousand) {
    EXPECT_THAT(data_weights("2,0.5,1000"), ElementsAre(2, 0.5, 1000));
    EXPECT_THAT(data_weights(""), ElementsAre());
    for (const char* text : {"0", "-1", "1,", ",", "two", "nan", "inf", "1001", "1;2", "1,0"})
        EXPECT_THROW(data_weights(text), BadConfig) << text;
}

TEST_F(DataWeightsTest, SetsOfOneShapeAreMixedOnAnyRanks) {
    test::write_bert_like_corpus(world_, folder_, {50, 1, 30});
    Corpus corpus{context_, names(3), test::bert_like_schema(), options("1.5,3,0.3")};

    for (const std::int64_t batch : {7, 64})
        expect_epochs(corpus, {.samples = batch}, {{50, 75}, {1, 3}, {30, 9}});

    const std::vector<std::string> known{"web", "books", "tiny"};
    const std::string report = corpus.weights_report(known);
    EXPECT_THAT(report, HasSubstr("books"));
    EXPECT_THAT(report, HasSubstr("86.2 %"));  // 75 of 87
    EXPECT_THAT(report, HasSubstr("87"));
}

TEST_F(DataWeightsTest, SetsOfUnequalLengthsAreMixedOnAnyRanks) {
    test::write_ragged_corpus(world_, folder_, {70, 3, 55});
    Corpus corpus{context_, names(3), test::ragged_schema(), options("0.25,2.4,1.2")};

    for (const BatchSize& size : {BatchSize{.units = 150}, BatchSize{.samples = 9}})
        expect_epochs(corpus, size, {{70, 18}, {3, 7}, {55, 66}});

    EXPECT_THAT(corpus.weights_report({}), HasSubstr("tokens an epoch"));
}

TEST_F(DataWeightsTest, OfOneEachLeaveTheOrderAsItIs) {
    test::write_bert_like_corpus(world_, folder_, {20, 10});
    Corpus corpus{context_, names(2), test::bert_like_schema(), options("1,1.0")};

    EXPECT_EQ(corpus.geometry().sets, nullptr);
}

TEST_F(DataWeightsTest, NeedOneForEachName) {
    test::write_bert_like_corpus(world_, folder_, {20, 10});

    for (const char* weights : {"2", "1,1,1"}) {
        const test::Thrown thrown = test::thrown_by([&] {
            Corpus{context_, names(2), test::bert_like_schema(), options(weights)};
        });
        EXPECT_EQ(thrown.code, ExitCode::config);
        EXPECT_THAT(thrown.text, HasSubstr("--data has 2 names"));
    }
}

TEST_F(DataWeightsTest, BelongToNamesAndNotToFiles) {
    test::write_bert_like_corpus(world_, folder_, {20, 0, 10, 4});
    const std::string last_first = (folder_ / test::shard_name(3)) + "," + names(3);
    Corpus corpus{context_, last_first, test::bert_like_schema(), options("4,1,1,0.5")};

    expect_epochs(corpus, {.samples = 9}, {{20, 20}, {10, 5}, {4, 16}});
}

}  // namespace
}  // namespace hetseq
