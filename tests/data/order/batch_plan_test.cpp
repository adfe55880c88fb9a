#include "hetseq/data/order/batch_plan.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/data/order/global_order.hpp"

namespace hetseq {
namespace {

TEST(BatchPlanTest, LastBatchOfAnEpochHoldsWhatIsLeft) {
    const BatchPlan plan{10, 4};

    const GlobalBatch last = plan.batch(5);

    EXPECT_EQ(plan.batches_per_epoch(), 3);
    EXPECT_EQ(last.update, 5);
    EXPECT_EQ(last.epoch, 1);
    EXPECT_EQ(last.begin, 8);
    EXPECT_EQ(last.end, 10);
}

TEST(BatchPlanTest, BatchLargerThanTheCorpusIsOneEpoch) {
    const BatchPlan plan{3, 100};

    const GlobalBatch batch = plan.batch(7);

    EXPECT_EQ(plan.batches_per_epoch(), 1);
    EXPECT_EQ(batch.epoch, 7);
    EXPECT_EQ(batch.begin, 0);
    EXPECT_EQ(batch.end, 3);
}

TEST(CutByRankTest, GivesEachRankItsUnits) {
    const GlobalBatch batch{.begin = 100, .end = 110};

    const auto slices = cut_by_rank(batch, std::vector<std::int64_t>{3, 0, 7});

    EXPECT_EQ(slices, (std::vector<Slice>{{100, 103}, {103, 103}, {103, 110}}));
}

TEST(CutByRankTest, RanksWithoutUnitsAtEitherEndGetNothing) {
    const GlobalBatch batch{.begin = 0, .end = 4};

    const auto slices = cut_by_rank(batch, std::vector<std::int64_t>{0, 0, 4, 0});

    EXPECT_EQ(slices, (std::vector<Slice>{{0, 0}, {0, 0}, {0, 4}, {4, 4}}));
}

TEST(CutByRankTest, StraddlingSampleGoesToTheSideThatHoldsMoreOfIt) {
    const GlobalBatch batch{.begin = 0, .end = 3};
    const std::vector<std::int64_t> lengths{4, 6, 2};

    EXPECT_EQ(cut_by_rank(batch, std::vector<std::int64_t>{8, 4}, lengths),
              (std::vector<Slice>{{0, 2}, {2, 3}}));
    EXPECT_EQ(cut_by_rank(batch, std::vector<std::int64_t>{6, 6}, lengths),
              (std::vector<Slice>{{0, 1}, {1, 3}}));
}

TEST(CutByRankTest, UnequalSamplesAreCutContiguouslyWithinOneSample) {
    std::mt19937 random{1};  // its numbers are fixed by the C++ standard
    for (int repeat = 0; repeat < 200; ++repeat) {
        const std::int64_t samples = 1 + static_cast<std::int64_t>(random() % 40);
        const std::size_t ranks = 1 + random() % 6;
        std::vector<std::int64_t> lengths;
        for (std::int64_t i = 0; i < samples; ++i)
            lengths.push_back(1 + static_cast<std::int64_t>(random() % 50));
        const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), 0L);
        const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
        std::vector<std::int64_t> units(ranks, 0);
        for (std::int64_t i = 0; i < total; ++i)
            ++units[random() % ranks];

        const auto slices = cut_by_rank({.begin = 0, .end = samples}, units, lengths);

        std::int64_t next = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            EXPECT_EQ(slices[rank].begin, next);
            next = slices[rank].end;
            const std::int64_t got = std::accumulate(
                lengths.begin() + slices[rank].begin, lengths.begin() + slices[rank].end, 0L);
            EXPECT_LE(std::abs(got - units[rank]), longest);
        }
        EXPECT_EQ(next, samples);
    }
}

TEST(CutIntoMicroBatchesTest, PiecesAreAsEvenAsTheyCanBe) {
    EXPECT_EQ(cut_into_micro_batches({10, 20}, 4),
              (std::vector<Slice>{{10, 14}, {14, 17}, {17, 20}}));
    EXPECT_EQ(cut_into_micro_batches({0, 8}, 4), (std::vector<Slice>{{0, 4}, {4, 8}}));
    EXPECT_EQ(cut_into_micro_batches({0, 3}, 8), (std::vector<Slice>{{0, 3}}));
    EXPECT_EQ(cut_into_micro_batches({0, 3}, 1), (std::vector<Slice>{{0, 1}, {1, 2}, {2, 3}}));
}

TEST(CutIntoMicroBatchesTest, EmptySliceHasNone) {
    EXPECT_TRUE(cut_into_micro_batches({5, 5}, 4).empty());
    EXPECT_TRUE(cut_into_micro_batches({5, 5}, 0).empty());
}

// Splits `size` over ranks in the ratio of `weights`, the remainder to the first that has any.
std::vector<std::int64_t> shares(std::int64_t size, const std::vector<std::int64_t>& weights) {
    const std::int64_t sum = std::accumulate(weights.begin(), weights.end(), 0L);
    std::vector<std::int64_t> units;
    for (const std::int64_t weight : weights)
        units.push_back(size * weight / sum);
    const auto first = std::find_if(weights.begin(), weights.end(), [](auto w) { return w > 0; });
    units[static_cast<std::size_t>(first - weights.begin())] +=
        size - std::accumulate(units.begin(), units.end(), 0L);
    return units;
}

// Invariant 2: every sample exactly once an epoch.
TEST(PartitionTest, EverySampleOnceAnEpochForAnyRanksSharesAndBatches) {
    const std::vector<std::vector<std::int64_t>> layouts{
        {1}, {1, 1}, {3, 1}, {0, 1}, {3, 1, 0}, {1, 0, 0, 2}, std::vector<std::int64_t>(16, 1)};
    for (const std::int64_t samples : {1, 2, 5, 29}) {
        for (const std::int64_t batch_size : {1, 3, 7, 64}) {
            for (const auto& weights : layouts) {
                const BatchPlan plan{samples, batch_size};
                for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
                    const GlobalOrder order{{samples, 4, 2}, 1, epoch};
                    std::vector<int> visits(static_cast<std::size_t>(samples), 0);

                    for (std::int64_t k = 0; k < plan.batches_per_epoch(); ++k) {
                        const auto batch = plan.batch(epoch * plan.batches_per_epoch() + k);
                        for (const Slice& slice : cut_by_rank(batch, shares(batch.size(), weights)))
                            for (const Slice& micro : cut_into_micro_batches(slice, 2))
                                for (std::int64_t p = micro.begin; p < micro.end; ++p)
                                    ++visits[static_cast<std::size_t>(order(p))];
                    }

                    EXPECT_EQ(visits, std::vector<int>(visits.size(), 1))
                        << samples << " samples, batch " << batch_size << ", " << weights.size()
                        << " ranks, epoch " << epoch;
                }
            }
        }
    }
}

}  // namespace
}  // namespace hetseq
