#include "hetseq/data/order/tiling.hpp"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

// Whether slices tile a batch, each of them taken by a rank that has a view of the batch.
bool tile(const std::vector<GlobalBatch>& views, const std::vector<Slice>& slices) {
    std::array<double, Tiling::terms> sums{};
    for (std::size_t r = 0; r < slices.size(); ++r) {
        const auto values = Tiling(views[r], slices[r], r == 0).values();
        for (std::size_t i = 0; i < sums.size(); ++i)
            sums[i] += values[i];
    }
    return Tiling::holds(sums);
}

bool tile(const GlobalBatch& batch, const std::vector<Slice>& slices) {
    return tile(std::vector<GlobalBatch>(slices.size(), batch), slices);
}

GlobalBatch items(std::vector<std::int64_t> samples) {
    auto items = std::make_shared<BatchItems>();
    items->samples = std::move(samples);
    return {.update = 7, .end = items->size(), .items = items};
}

TEST(TilingTest, SlicesOneBehindTheOtherTile) {
    EXPECT_TRUE(tile({.update = 3, .begin = 20, .end = 50}, {{20, 30}, {30, 30}, {30, 50}}));
    EXPECT_TRUE(tile({.begin = 20, .end = 50}, {{50, 50}, {20, 50}, {50, 50}}));
    EXPECT_TRUE(tile(items({4, 9, 2}), {{0, 2}, {2, 3}, {3, 3}}));
}

TEST(TilingTest, ASampleThatIsTakenTwiceOrNeverIsSeen) {
    const GlobalBatch batch{.begin = 20, .end = 50};

    EXPECT_FALSE(tile(batch, {{20, 31}, {30, 50}}));
    EXPECT_FALSE(tile(batch, {{20, 29}, {30, 50}}));
    EXPECT_FALSE(tile(batch, {{20, 30}, {30, 49}}));
    EXPECT_FALSE(tile(batch, {{21, 30}, {30, 50}}));
    EXPECT_FALSE(tile(items({4, 9, 2}), {{0, 1}, {2, 3}}));
    // One is taken twice and one never: the number of samples is right.
    EXPECT_FALSE(tile(batch, {{20, 31}, {30, 49}}));
    EXPECT_FALSE(tile(batch, {{20, 30}, {29, 40}, {41, 50}}));
}

TEST(TilingTest, RanksWithOtherViewsOfTheBatchAreSeen) {
    const std::vector<Slice> slices{{0, 2}, {2, 3}};

    EXPECT_TRUE(tile({items({4, 9, 2}), items({4, 9, 2})}, slices));
    EXPECT_FALSE(tile({items({4, 9, 2}), items({4, 9, 3})}, slices));
    EXPECT_FALSE(tile({GlobalBatch{.end = 3}, GlobalBatch{.end = 4}}, slices));
    EXPECT_FALSE(
        tile({GlobalBatch{.update = 1, .end = 3}, GlobalBatch{.update = 2, .end = 3}}, slices));
}

TEST(TilingTest, ManyBatchesAreCheckedAtOnce) {
    std::vector<Tiling> good(2), bad(2);
    for (std::int64_t update = 0; update < 1000; ++update) {
        const GlobalBatch batch{.update = update, .begin = 10 * update, .end = 10 * update + 10};
        const std::int64_t border = batch.begin + update % 11;
        good[0].add(Tiling(batch, {batch.begin, border}, true));
        good[1].add(Tiling(batch, {border, batch.end}, false));
        bad[0].add(Tiling(batch, {batch.begin, border}, true));
        bad[1].add(Tiling(batch, {border + (update == 500 ? 1 : 0), batch.end}, false));
    }
    const auto sums = [](const std::vector<Tiling>& tilings) {
        return std::vector<double>{tilings[0].values()[0] + tilings[1].values()[0],
                                   tilings[0].values()[1] + tilings[1].values()[1]};
    };

    EXPECT_TRUE(Tiling::holds(sums(good)));
    EXPECT_FALSE(Tiling::holds(sums(bad)));
}

}  // namespace
}  // namespace hetseq
