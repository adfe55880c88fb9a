#include "hetseq/data/order/batch_plan.hpp"

#include <algorithm>
#include <numeric>
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
                            for (std::int64_t p = slice.begin; p < slice.end; ++p)
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
