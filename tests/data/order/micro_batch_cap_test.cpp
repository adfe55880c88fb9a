#include "hetseq/data/order/micro_batch_cap.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

using Lengths = std::vector<std::int64_t>;

TEST(MicroBatchCapTest, RowsOfOneShapeAreCutAsEvenAsTheyCanBe) {
    EXPECT_EQ(cut_into_micro_batches(10, {.samples = 4}),
              (std::vector<Slice>{{0, 4}, {4, 7}, {7, 10}}));
    EXPECT_EQ(cut_into_micro_batches(8, {.samples = 4}), (std::vector<Slice>{{0, 4}, {4, 8}}));
    EXPECT_EQ(cut_into_micro_batches(3, {.samples = 8}), (std::vector<Slice>{{0, 3}}));
    EXPECT_EQ(cut_into_micro_batches(3, {.samples = 1}),
              (std::vector<Slice>{{0, 1}, {1, 2}, {2, 3}}));
    EXPECT_TRUE(cut_into_micro_batches(0, {.samples = 4}).empty());
}

TEST(MicroBatchCapTest, UnequalSamplesAreCutByPaddedTokens) {
    EXPECT_EQ(cut_into_micro_batches(Lengths{1, 1, 1, 1, 4}, {.tokens = 4}),
              (std::vector<Slice>{{0, 4}, {4, 5}}));
    EXPECT_EQ(cut_into_micro_batches(Lengths{2, 2, 2, 2}, {.samples = 3, .tokens = 100}),
              (std::vector<Slice>{{0, 2}, {2, 4}}));
    EXPECT_TRUE(cut_into_micro_batches(Lengths{}, {.tokens = 4}).empty());
}

TEST(MicroBatchCapTest, ASampleLongerThanTheCapStandsAlone) {
    EXPECT_EQ(cut_into_micro_batches(Lengths{1, 9, 1}, {.tokens = 4}),
              (std::vector<Slice>{{0, 1}, {1, 2}, {2, 3}}));
}

TEST(MicroBatchCapTest, SamplesWithoutTokensCostNothing) {
    EXPECT_EQ(cut_into_micro_batches(Lengths{0, 0, 0, 3}, {.tokens = 12}),
              (std::vector<Slice>{{0, 4}}));
}

// All contiguous cuts, tried one by one.
struct Best {
    std::size_t pieces = 1000;
    std::int64_t largest = 0;
};
Best best_cut(const Lengths& lengths, const MicroBatchCap& cap) {
    Best best;
    const auto n = static_cast<std::int64_t>(lengths.size());
    const std::function<void(std::int64_t, std::size_t, std::int64_t)> try_from =
        [&](std::int64_t begin, std::size_t pieces, std::int64_t largest) {
            if (begin == n) {
                if (pieces < best.pieces || (pieces == best.pieces && largest < best.largest))
                    best = {pieces, largest};
                return;
            }
            std::int64_t longest = 0;
            for (std::int64_t end = begin + 1; end <= n; ++end) {
                longest = std::max(longest, lengths[static_cast<std::size_t>(end - 1)]);
                const std::int64_t size = end - begin;
                if (size > 1 && (size > cap.samples || size * longest > cap.tokens))
                    break;
                try_from(end, pieces + 1, std::max(largest, size * longest));
            }
        };
    try_from(0, 0, 0);
    return best;
}

TEST(MicroBatchCapTest, CutsAreAsFewAndThenAsEvenAsAnyContiguousOnes) {
    std::uint64_t state = 7;
    const auto random = [&](std::int64_t below) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        return static_cast<std::int64_t>(state >> 33U) % below;
    };
    for (int repeat = 0; repeat < 300; ++repeat) {
        Lengths lengths;
        for (std::int64_t i = 1 + random(9); i > 0; --i)
            lengths.push_back(random(7));
        std::sort(lengths.begin(), lengths.end());
        const MicroBatchCap cap{1 + random(6), 1 + random(20)};

        const std::vector<Slice> cuts = cut_into_micro_batches(lengths, cap);

        const Best best = best_cut(lengths, cap);
        EXPECT_EQ(cuts.size(), best.pieces) << "repeat " << repeat;
        std::int64_t largest = 0, next = 0;
        for (const Slice& cut : cuts) {
            EXPECT_EQ(cut.begin, next);
            next = cut.end;
            largest = std::max(largest, padded_tokens(lengths, std::vector<Slice>{cut}));
        }
        EXPECT_EQ(next, std::ssize(lengths));
        EXPECT_EQ(largest, best.largest) << "repeat " << repeat;
    }
}

}  // namespace
}  // namespace hetseq
