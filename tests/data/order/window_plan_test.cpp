#include "hetseq/data/order/window_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

using Lengths = std::vector<std::int64_t>;  // by sample

// Lengths in memory, of a field and of another one that is as long again and three more.
class KnownLengths final : public LengthSource {
public:
    KnownLengths(Lengths lengths, std::int64_t block_length)
        : lengths_{std::move(lengths)}, block_length_{block_length} {}

    std::shared_ptr<const RowLengths> lengths(std::int64_t block) override {
        asked_.insert(block);
        auto rows = std::make_shared<RowLengths>(2);
        const auto samples = std::ssize(lengths_);
        for (std::int64_t i = block * block_length_;
             i < std::min((block + 1) * block_length_, samples);
             ++i) {
            const auto length = static_cast<std::int32_t>(lengths_[static_cast<std::size_t>(i)]);
            (*rows)[0].push_back(length);
            (*rows)[1].push_back(length + 3);
        }
        return rows;
    }
    void read_ahead(std::int64_t) override {}

    const std::set<std::int64_t>& asked() const { return asked_; }

private:
    Lengths lengths_;
    std::int64_t block_length_;
    std::set<std::int64_t> asked_;
};

struct Case {
    Lengths lengths;
    std::int64_t block_length = 4;
    std::int64_t shuffle_blocks = 2;
    std::int64_t batch = 20;
    bool counts_samples = false;
    std::int64_t max_length = 0;
    Shuffle shuffle = Shuffle::yes;
    std::uint64_t seed = 3;
    std::vector<SampleSet> sets{};
};

class Planned {
public:
    explicit Planned(const Case& of)
        : of_{of}, source{of.lengths, of.block_length}, plan{options(of), source} {}

    static WindowPlanOptions options(const Case& of) {
        WindowPlanOptions options{
            .geometry = {std::ssize(of.lengths), of.block_length, of.shuffle_blocks},
            .seed = of.seed,
            .shuffle = of.shuffle,
            .batch_weight = of.batch,
            .units_field = 0,
            .counts_samples = of.counts_samples,
            .max_length = of.max_length};
        if (!of.sets.empty())
            options.geometry.sets = std::make_shared<const std::vector<SampleSet>>(of.sets);
        options.block_samples.resize(static_cast<std::size_t>(options.geometry.blocks()), 0);
        options.block_weights = options.block_samples;
        for (std::size_t i = 0; i < of.lengths.size(); ++i) {
            if (of.max_length > 0 && of.lengths[i] + 3 > of.max_length)
                continue;
            const std::size_t block = i / static_cast<std::size_t>(of.block_length);
            ++options.block_samples[block];
            options.block_weights[block] += of.counts_samples ? 1 : of.lengths[i];
        }
        return options;
    }

    std::vector<std::int64_t> visits(std::int64_t epoch) {
        std::vector<std::int64_t> visits(of_.lengths.size(), 0);
        for (std::int64_t k = 0; k < plan.batches_per_epoch(); ++k)
            for (const std::int64_t sample :
                 plan.batch(epoch * plan.batches_per_epoch() + k).items->samples)
                ++visits[static_cast<std::size_t>(sample)];
        return visits;
    }

private:
    Case of_;

public:
    KnownLengths source;
    WindowPlan plan;
};

// Numbers that look random: lengths from 0 to `most`.
Lengths mixed_lengths(std::int64_t samples, std::int64_t most, std::uint64_t seed) {
    Lengths lengths;
    for (std::int64_t i = 0; i < samples; ++i)
        lengths.push_back(static_cast<std::int64_t>(
                              (seed = seed * 6364136223846793005U + 1442695040888963407U) >> 33U) %
                          (most + 1));
    return lengths;
}

TEST(WindowPlanTest, EverySampleComesOnceAnEpochInBatchesThatAreNotEmpty) {
    for (const std::int64_t samples : {1, 2, 7, 40, 100})
        for (const std::int64_t most : {1, 9, 20})
            for (const std::int64_t block_length : {1, 4, 64})
                for (const std::int64_t batch : {20, 21, 57, 1000})
                    for (const bool counts_samples : {false, true})
                        for (const Shuffle shuffle : {Shuffle::yes, Shuffle::no}) {
                            Planned planned({.lengths = mixed_lengths(samples, most, 5),
                                             .block_length = block_length,
                                             .batch = batch,
                                             .counts_samples = counts_samples,
                                             .shuffle = shuffle});
                            for (std::int64_t epoch = 0; epoch < 3; ++epoch)
                                EXPECT_EQ(planned.visits(epoch), Lengths(samples, 1))
                                    << samples << " samples to " << most << ", blocks of "
                                    << block_length << ", batches of " << batch << ", epoch "
                                    << epoch;
                            for (std::int64_t k = 0; k < planned.plan.batches_per_epoch(); ++k)
                                EXPECT_GE(planned.plan.batch(k).size(), 1);
                        }
}

TEST(WindowPlanTest, BatchesHoldTheirUnitsToWithinTheLongestSamples) {
    const std::int64_t longest = 30, batch = 400;
    Planned planned({.lengths = mixed_lengths(5000, longest, 9),
                     .block_length = 100,
                     .shuffle_blocks = 8,
                     .batch = batch});
    const std::int64_t last = planned.plan.batches_per_epoch() - 1;
    std::int64_t total = 0;

    for (std::int64_t k = 0; k <= last; ++k) {
        const GlobalBatch found = planned.plan.batch(k);
        total += found.units();
        EXPECT_EQ(found.is_full, k < last);
        if (k < last) {
            EXPECT_LE(std::abs(found.units() - batch), 2 * longest) << "batch " << k;
        }
    }

    const Lengths lengths = mixed_lengths(5000, longest, 9);
    EXPECT_EQ(total, std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
    EXPECT_EQ(planned.plan.batches_per_epoch(), (total + batch - 1) / batch);
}

TEST(WindowPlanTest, BatchesOfSamplesHaveExactlyAsMany) {
    Planned planned({.lengths = mixed_lengths(103, 9, 2), .batch = 10, .counts_samples = true});

    EXPECT_EQ(planned.plan.batches_per_epoch(), 11);
    for (std::int64_t k = 0; k < 10; ++k)
        EXPECT_EQ(planned.plan.batch(k).size(), 10);
    EXPECT_EQ(planned.plan.batch(10).size(), 3);
    EXPECT_FALSE(planned.plan.batch(10).is_full);
}

TEST(WindowPlanTest, ManyShortSamplesAndALongOneShareABatch) {
    Lengths lengths(32, 1);
    lengths.push_back(500);
    Planned planned({.lengths = lengths, .block_length = 64, .batch = 532});

    const GlobalBatch batch = planned.plan.batch(0);

    EXPECT_EQ(planned.plan.batches_per_epoch(), 1);
    EXPECT_EQ(batch.size(), 33);
    EXPECT_EQ(batch.units(), 532);
    EXPECT_EQ(batch.items->units.back(), 500);
}

TEST(WindowPlanTest, AnEpochsLastBatchMayBeOneSample) {
    Planned planned({.lengths = Lengths(41, 5), .batch = 50});

    EXPECT_EQ(planned.plan.batches_per_epoch(), 5);
    EXPECT_EQ(planned.plan.batch(4).size(), 1);
    EXPECT_TRUE(planned.plan.batch(3).is_full);
}

TEST(WindowPlanTest, SamplesWithoutUnitsAreBatchesToo) {
    Planned planned({.lengths = Lengths(9, 0)});

    EXPECT_EQ(planned.plan.batches_per_epoch(), 1);
    EXPECT_EQ(planned.visits(0), Lengths(9, 1));
}

TEST(WindowPlanTest, TooLongSamplesAreLeftOut) {
    Lengths lengths = mixed_lengths(50, 9, 4);
    lengths[7] = 18;
    lengths[8] = 30;
    Planned planned({.lengths = lengths, .max_length = 20});
    Lengths expected(50, 1);
    expected[7] = expected[8] = 0;  // their other rows have 21 and 33

    EXPECT_EQ(planned.plan.samples(), 48);
    EXPECT_EQ(planned.visits(0), expected);
    EXPECT_EQ(planned.visits(1), expected);
}

TEST(WindowPlanTest, ABatchFoundAloneIsTheSame) {
    const Case of{.lengths = mixed_lengths(700, 12, 8), .block_length = 16, .batch = 70};
    Planned all(of);
    const std::int64_t batches = all.plan.batches_per_epoch();

    for (std::int64_t k = 0; k < 2 * batches; ++k) {
        const GlobalBatch in_turn = all.plan.batch(k);
        Planned fresh(of);
        const GlobalBatch alone = fresh.plan.batch(k);
        EXPECT_EQ(alone.items->samples, in_turn.items->samples) << "batch " << k;
        EXPECT_EQ(alone.items->lengths, in_turn.items->lengths);
        EXPECT_EQ(alone.epoch, k / batches);
    }
}

TEST(WindowPlanTest, ABatchNeedsItsWindowsLengthsAlone) {
    Planned planned({.lengths = mixed_lengths(4000, 12, 8),
                     .block_length = 100,
                     .shuffle_blocks = 4,
                     .batch = 200});

    planned.plan.batch(planned.plan.batches_per_epoch() / 2);

    EXPECT_LE(planned.source.asked().size(), 8u);  // of 40 blocks: its group's, and those before it
}

TEST(WindowPlanTest, EpochsAndSeedsHaveOtherBatches) {
    const Case of{.lengths = mixed_lengths(300, 12, 8), .batch = 60};
    Planned planned(of);
    Case other = of;
    other.seed = 4;

    const auto first = planned.plan.batch(0).items->samples;

    EXPECT_NE(planned.plan.batch(planned.plan.batches_per_epoch()).items->samples, first);
    EXPECT_NE(Planned(other).plan.batch(0).items->samples, first);
}

TEST(WindowPlanTest, SamplesOfABatchHaveLikeLengths) {
    const Lengths lengths = mixed_lengths(4000, 50, 6);
    Planned planned({.lengths = lengths, .block_length = 500, .shuffle_blocks = 8, .batch = 2000});
    std::int64_t padded = 0, units = 0;

    for (std::int64_t k = 0; k < planned.plan.batches_per_epoch(); ++k) {
        const GlobalBatch batch = planned.plan.batch(k);
        padded +=
            batch.size() * *std::max_element(batch.items->units.begin(), batch.items->units.end());
        units += batch.units();
    }

    EXPECT_LT(static_cast<double>(padded), 1.1 * static_cast<double>(units));
}

TEST(WindowPlanTest, BatchesOfAWindowAreShuffled) {
    Planned planned({.lengths = mixed_lengths(4000, 50, 6),
                     .block_length = 500,
                     .shuffle_blocks = 8,
                     .batch = 2000});
    std::vector<std::int64_t> longest;
    for (std::int64_t k = 0; k + 1 < planned.plan.batches_per_epoch(); ++k)
        longest.push_back(planned.plan.batch(k).items->units.back());

    EXPECT_FALSE(std::is_sorted(longest.begin(), longest.end()));
}

TEST(CutByRankTest, ItemsAreCutByCostWithinOneOfThem) {
    auto items = std::make_shared<BatchItems>();
    items->samples = {4, 5, 6, 7};
    items->lengths = {{1, 1, 2, 4}};
    items->units = {1, 1, 2, 4};
    const GlobalBatch batch{.end = 4, .items = items};

    EXPECT_EQ(cut_by_rank(batch, std::vector<std::int64_t>{1, 1}, ItemCost{}.of(*items)),
              (std::vector<Slice>{{0, 3}, {3, 4}}));
    // With squares the last one costs 4 + 16 of 8 + 22.
    EXPECT_EQ(cut_by_rank(batch, std::vector<std::int64_t>{1, 0, 2}, ItemCost{1}.of(*items)),
              (std::vector<Slice>{{0, 3}, {3, 3}, {3, 4}}));
}

// Of 90 samples, a set of one among them; 12 epochs.
Case weighted_case(std::int64_t block_length, std::int64_t batch, bool counts_samples) {
    return {.lengths = mixed_lengths(90, 9, 5),
            .block_length = block_length,
            .batch = batch,
            .counts_samples = counts_samples,
            .sets = {{{{0, 40}, {41, 53}}, 71}, {{{40, 41}}, 3}, {{{53, 90}}, 9}}};
}

TEST(WindowPlanTest, SetsAreTakenByTheirWeightsInAsManyBatchesEachEpoch) {
    for (const std::int64_t block_length : {1, 4, 64})
        for (const std::int64_t batch : {20, 57, 1000})
            for (const bool counts_samples : {false, true}) {
                const Case of = weighted_case(block_length, batch, counts_samples);
                Planned planned(of);
                for (std::int64_t epoch = 0; epoch < 12; ++epoch) {
                    const std::vector<std::int64_t> visits = planned.visits(epoch);
                    for (const SampleSet& set : of.sets) {
                        std::int64_t sum = 0;
                        for (const SampleRange& range : set.ranges)
                            for (std::int64_t i = range.begin; i < range.end; ++i) {
                                const std::int64_t times = visits[static_cast<std::size_t>(i)];
                                const std::int64_t floor = set.samples_of_epoch / set.samples();
                                ASSERT_TRUE(times == floor || times == floor + 1) << times;
                                sum += times;
                            }
                        ASSERT_EQ(sum, set.samples_of_epoch);
                    }
                }
                EXPECT_EQ(planned.plan.samples(), 83);
                if (counts_samples) {
                    EXPECT_EQ(planned.plan.batches_per_epoch(), (83 + batch - 1) / batch);
                }
            }
}

// What a run that continues there asks for first.
TEST(WindowPlanTest, ABatchOfWeightedSetsIsTheSameWhereverAPlanBegins) {
    const Case of = weighted_case(4, 20, false);
    Planned planned(of);
    for (std::int64_t update = 0; update < 3 * planned.plan.batches_per_epoch(); ++update) {
        const GlobalBatch batch = planned.plan.batch(update);
        Planned fresh(of);
        const GlobalBatch again = fresh.plan.batch(update);
        EXPECT_EQ(batch.items->samples, again.items->samples) << update;
        EXPECT_EQ(batch.window, again.window);
        EXPECT_GT(batch.size(), 0);
    }
}

// One epoch takes long samples, the next one short ones: their batches are as many.
TEST(WindowPlanTest, EpochsOfUnequalWeightDivideItEvenly) {
    Lengths lengths(64, 2);
    std::fill(lengths.begin() + 32, lengths.end(), 6);
    Planned planned(
        {.lengths = lengths, .block_length = 32, .batch = 16, .sets = {{{{0, 64}}, 32}}});

    ASSERT_EQ(planned.plan.batches_per_epoch(), 8);  // 128 units in the mean epoch
    std::set<std::int64_t> epochs;
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
        std::int64_t total = 0;
        for (std::int64_t k = 0; k < 8; ++k) {
            const std::int64_t units = planned.plan.batch(8 * epoch + k).units();
            total += units;
            EXPECT_TRUE(units == 8 || units == 24) << units;
        }
        epochs.insert(total);
    }
    EXPECT_EQ(epochs, (std::set<std::int64_t>{64, 192}));
}

// Some epochs have fewer units than the mean one, in samples that are longer than an even batch.
TEST(WindowPlanTest, NoBatchOfALightEpochIsEmpty) {
    Lengths lengths(40, 2);
    std::fill(lengths.begin(), lengths.begin() + 20, 100);
    for (const std::int64_t block_length : {1, 3, 20})
        for (const std::uint64_t seed : {1, 2, 3, 4}) {
            Planned planned({.lengths = lengths,
                             .block_length = block_length,
                             .shuffle_blocks = 1,
                             .batch = 120,
                             .seed = seed,
                             .sets = {{{{0, 40}}, 20}}});
            ASSERT_EQ(planned.plan.batches_per_epoch(), 9);
            for (std::int64_t update = 0; update < 36; ++update)
                ASSERT_GT(planned.plan.batch(update).size(), 0) << update << ", seed " << seed;
            EXPECT_EQ(planned.visits(0), planned.visits(2));
        }
}

}  // namespace
}  // namespace hetseq
