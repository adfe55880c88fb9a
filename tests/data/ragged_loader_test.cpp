#include <algorithm>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "hetseq/data/corpus_plan.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/data/loading/padded_rows.hpp"

#include "data/epoch_reader.hpp"
#include "data/error_text.hpp"
#include "data/generated_ragged_corpus.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;

// Hands the rows on; the weight is the target's tokens.
class PairCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor&) const override {
        MicroBatch batch;
        for (const auto& [name, tensor] : rows)
            batch.tensors[name] = tensor.clone();
        batch.tensors["matrix"] = padded_rows(rows, "source", -1);
        batch.weights = {static_cast<double>(rows.at("target").numel())};
        return batch;
    }
};

// Values of row `i` of a ragged field.
template <class T>
std::vector<std::int64_t> row_of(const MicroBatch& batch, const std::string& name, std::int64_t i) {
    const at::Tensor& offsets = batch.tensors.at(offsets_name(name));
    const auto begin = offsets[i].item<std::int64_t>(), end = offsets[i + 1].item<std::int64_t>();
    const T* values = batch.tensors.at(name).const_data_ptr<T>();
    return {values + begin, values + end};
}

// Ranks take their parts of the batch's values.
std::vector<Slice> cut_by_values(const GlobalBatch& batch, const std::vector<std::int64_t>& parts) {
    return cut_by_rank(batch, parts, ItemCost{}.of(*batch.items));
}

std::vector<std::int64_t> by_formula(std::int64_t sample,
                                     std::int64_t length,
                                     std::int64_t (*value)(std::int64_t, std::int64_t)) {
    std::vector<std::int64_t> row;
    for (std::int64_t column = 0; column < length; ++column)
        row.push_back(value(sample, column));
    return row;
}

void expect_formula_rows(const MicroBatch& batch) {
    for (std::int64_t i = 0; i < batch.samples; ++i) {
        const auto sample = batch.sample_ids[i].item<std::int64_t>();
        const auto source = by_formula(sample, test::source_length(sample), test::source_value);
        EXPECT_EQ(row_of<std::int32_t>(batch, "source", i), source) << "sample " << sample;
        EXPECT_EQ(row_of<std::int32_t>(batch, "target", i),
                  by_formula(sample, test::target_length(sample), test::target_value));
        EXPECT_EQ(row_of<std::int8_t>(batch, "marks", i),
                  by_formula(sample, test::target_length(sample), test::mark_value));
        EXPECT_EQ(row_of<std::uint8_t>(batch, "places", i),
                  by_formula(sample, test::place_length(sample), test::place_value));
        EXPECT_EQ(batch.tensors.at("labels")[i].item<std::int64_t>(), test::label_value(sample));
        const at::Tensor row = batch.tensors.at("matrix")[i];
        for (std::int64_t column = 0; column < row.numel(); ++column)
            EXPECT_EQ(row[column].item<std::int64_t>(),
                      column < std::ssize(source) ? source[static_cast<std::size_t>(column)] : -1);
    }
}

void expect_formula_pairs(const MicroBatch& batch) {
    expect_formula_rows(batch);
    std::int64_t units = 0, longest = 0;
    for (std::int64_t i = 0; i < batch.samples; ++i) {
        const auto sample = batch.sample_ids[i].item<std::int64_t>();
        units += test::target_length(sample);
        longest = std::max({longest,
                            test::source_length(sample),
                            test::target_length(sample),
                            test::place_length(sample)});
    }
    EXPECT_EQ(batch.units, units);
    EXPECT_EQ(batch.padded_tokens, batch.samples * longest);
}

class RaggedLoaderTest : public testing::Test {
protected:
    struct Reading {
        std::vector<std::int64_t> visits;    // by sample, over all ranks
        std::vector<std::int64_t> in_order;  // ids, batch by batch, rank by rank
        std::int64_t batches = 0;
    };

    // Reads `epochs` on all ranks, some requests ahead, and checks every value.
    Reading read(const BatchSize& size,
                 const MicroBatchCap& cap,
                 std::int64_t epochs,
                 const CorpusOptions& options,
                 Shuffle shuffle = Shuffle::yes) {
        Corpus corpus(context_, folder_.path(), test::ragged_schema(), options);
        const PairCollator collator;
        Loader loader(corpus, collator, {.seed = 8, .shuffle = shuffle, .loss_terms = 1});
        const BatchPlan plan = make_batch_plan(corpus, size, 8, shuffle);
        Reading reading;
        reading.batches = plan.batches_per_epoch();
        reading.visits.assign(static_cast<std::size_t>(samples_), 0);
        const std::int64_t end = epochs * plan.batches_per_epoch();
        std::int64_t requested = 0;
        for (std::int64_t update = 0; update < end; ++update) {
            for (; requested < std::min(update + 3, end); ++requested) {
                const GlobalBatch batch = plan.batch(requested);
                loader.request(
                    batch, cut_by_values(batch, test::uneven_weights(world_.size())), cap);
            }
            take(loader, cap, reading);
        }
        world_.all_reduce(reading.visits, ReduceOp::sum);
        return reading;
    }

    void take(Loader& loader, const MicroBatchCap& cap, Reading& reading) {
        const LoadedShare share = loader.take();
        std::vector<std::int64_t> own;
        for (const MicroBatch& batch : share.micro_batches()) {
            expect_formula_pairs(batch);
            EXPECT_LE(batch.samples, cap.samples);
            EXPECT_TRUE(batch.samples == 1 || batch.padded_tokens <= cap.tokens);
            for (std::int64_t i = 0; i < batch.samples; ++i)
                own.push_back(batch.sample_ids[i].item<std::int64_t>());
        }
        for (const std::int64_t sample : own)
            ++reading.visits[static_cast<std::size_t>(sample)];
        EXPECT_EQ(std::ssize(own), share.samples());
        std::string text;
        for (const std::int64_t sample : own)
            text += std::to_string(sample) + " ";
        for (const std::string& of_rank : world_.all_gather(text))
            for (std::size_t begin = 0, space; begin < of_rank.size(); begin = space + 1) {
                space = of_rank.find(' ', begin);
                reading.in_order.push_back(std::stoll(of_rank.substr(begin, space - begin)));
            }
    }

    std::vector<std::int64_t> each(std::int64_t times) const {
        return std::vector<std::int64_t>(static_cast<std::size_t>(samples_), times);
    }

    HostComm world_ = test::world();
    test::SharedFolder folder_{world_};
    std::int64_t samples_ = test::write_ragged_corpus(world_, folder_, {70, 0, 31, 55});
    DataContext context_{world_, test::environment().thread_support() == ThreadSupport::multiple};
};

const CorpusOptions small_blocks{.shuffle_blocks = 3, .block_length = 8, .cache_mb = 1};

TEST_F(RaggedLoaderTest, EverySampleComesOnceAnEpochWithItsValues) {
    const Reading reading = read({.units = 120}, {.samples = 7, .tokens = 90}, 3, small_blocks);

    EXPECT_EQ(reading.visits, each(3));
    EXPECT_GT(reading.batches, 8);
}

TEST_F(RaggedLoaderTest, BatchesOfSamplesDoToo) {
    const Reading reading = read({.samples = 25}, {.tokens = 500}, 2, small_blocks);

    EXPECT_EQ(reading.visits, each(2));
    EXPECT_EQ(reading.batches, 7);
}

// An epoch that takes a part of its data may have fewer samples than batches.
TEST_F(RaggedLoaderTest, ABatchWithoutSamplesIsNothingToCompute) {
    Corpus corpus(context_, folder_.path(), test::ragged_schema(), small_blocks);
    const PairCollator collator;
    Loader loader(corpus, collator, {.seed = 8, .shuffle = Shuffle::yes, .loss_terms = 1});
    GlobalBatch empty = make_batch_plan(corpus, {.units = 120}, 8, Shuffle::yes).batch(0);
    empty.items = std::make_shared<const BatchItems>();
    empty.end = 0;

    loader.request(empty,
                   std::vector<Slice>(static_cast<std::size_t>(world_.size())),
                   {.samples = 7, .tokens = 90});
    const LoadedShare share = loader.take();

    EXPECT_EQ(share.samples(), 0);
    EXPECT_TRUE(share.micro_batches().empty());
}

TEST_F(RaggedLoaderTest, WithoutShufflingToo) {
    EXPECT_EQ(read({.units = 200}, {}, 2, small_blocks, Shuffle::no).visits, each(2));
}

TEST_F(RaggedLoaderTest, ABatchIsTheSameHoweverItIsRead) {
    const Reading reading = read({.units = 150}, {.tokens = 600}, 1, small_blocks);
    CorpusOptions options = small_blocks;
    options.cache_mb = 64;
    options.io = IoMode::independent;

    const Reading other = read({.units = 150}, {.samples = 2}, 1, options);

    EXPECT_EQ(reading.in_order, other.in_order);
}

// Samples with encoded images are read in the order of rows of one shape.
TEST_F(RaggedLoaderTest, FieldsThatSetNoLengthsLeaveTheOrderOfSamples) {
    CorpusSchema schema = test::ragged_schema();
    schema.units_field.clear();
    for (FieldSchema& field : schema.fields)
        field.sets_lengths = false;
    Corpus corpus(context_, folder_.path(), schema, small_blocks);
    const PairCollator collator;
    Loader loader(corpus, collator, {.seed = 8, .loss_terms = 1});
    const BatchPlan plan = make_batch_plan(corpus, {.samples = 30}, 8);
    const GlobalOrder order(corpus.geometry(), 8, /*epoch=*/0, Shuffle::yes);

    EXPECT_FALSE(corpus.is_ragged());
    for (std::int64_t update = 0; update < plan.batches_per_epoch(); ++update) {
        const GlobalBatch batch = plan.batch(update);
        const std::vector<Slice> slices =
            cut_by_rank(batch, test::split(batch.size(), test::uneven_weights(world_.size())));
        loader.request(batch, slices, {.samples = 7});
        const LoadedShare share = loader.take();
        std::int64_t position = slices[static_cast<std::size_t>(world_.rank())].begin;
        for (const MicroBatch& part : share.micro_batches()) {
            expect_formula_rows(part);
            for (std::int64_t i = 0; i < part.samples; ++i)
                EXPECT_EQ(part.sample_ids[i].item<std::int64_t>(), order(position++));
        }
    }
}

// Beside text, whose lengths do.
TEST_F(RaggedLoaderTest, FieldsThatSetNoLengthsDoNotCountAsPadding) {
    CorpusSchema schema = test::ragged_schema();
    schema.fields[0].sets_lengths = false;  // the source, whose row 37 has 500 values
    Corpus corpus(context_, folder_.path(), schema, small_blocks);
    const PairCollator collator;
    Loader loader(corpus, collator, {.seed = 8, .loss_terms = 1});
    const BatchPlan plan = make_batch_plan(corpus, {.units = 120}, 8);

    for (std::int64_t update = 0; update < plan.batches_per_epoch(); ++update) {
        const GlobalBatch batch = plan.batch(update);
        loader.request(
            batch, cut_by_values(batch, test::uneven_weights(world_.size())), {.tokens = 90});
        const LoadedShare share = loader.take();
        for (const MicroBatch& part : share.micro_batches()) {
            expect_formula_rows(part);
            EXPECT_LE(part.padded_tokens, 90);
        }
    }
}

TEST_F(RaggedLoaderTest, TheCutIsMadeAgainWithinASmallerCap) {
    Corpus corpus(context_, folder_.path(), test::ragged_schema(), small_blocks);
    const PairCollator collator;
    Loader loader(corpus, collator, {.seed = 8, .loss_terms = 1});
    const BatchPlan plan = make_batch_plan(corpus, {.units = 300}, 8);
    const GlobalBatch batch = plan.batch(0);
    loader.request(
        batch,
        cut_by_values(batch, std::vector<std::int64_t>(static_cast<std::size_t>(world_.size()), 1)),
        {});
    LoadedShare share = loader.take();
    const std::vector<double> weights = share.weights();
    const std::int64_t units = share.units();

    share.recut({.tokens = 40});

    EXPECT_EQ(share.weights(), weights);
    EXPECT_EQ(share.units(), units);
    EXPECT_GT(share.micro_batches().size(), 1U);
    EXPECT_GE(share.padding().padded_values, share.padding().values);
    for (const MicroBatch& micro_batch : share.micro_batches())
        expect_formula_pairs(micro_batch);
}

TEST_F(RaggedLoaderTest, SamplesThatAreTooLongAreAnErrorOrLeftOut) {
    CorpusOptions options = small_blocks;
    options.max_length = 100;
    EXPECT_THAT(test::thrown_by([&] {
                    Corpus(context_, folder_.path(), test::ragged_schema(), options);
                }).text,
                HasSubstr("1 of 156 samples are longer than 100 (the first is row 37 of "));
    options.skip_too_long = true;
    std::vector<std::int64_t> expected = each(2);
    expected[37] = 0;

    EXPECT_EQ(read({.units = 120}, {}, 2, options).visits, expected);
}

TEST_F(RaggedLoaderTest, BatchesThatCannotHoldTheLongestSampleAreRefused) {
    Corpus corpus(context_, folder_.path(), test::ragged_schema(), small_blocks);

    EXPECT_THAT(test::thrown_by([&] { make_batch_plan(corpus, {.units = 15}, 8); }).text,
                HasSubstr("batches of 15 tokens are too small (the longest sample has 16)"));
}

}  // namespace
}  // namespace hetseq
