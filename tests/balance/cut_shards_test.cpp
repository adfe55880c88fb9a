#include "hetseq/balance/cut_shards.hpp"

#include <cmath>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

using Blocks = std::vector<std::int64_t>;
using Buckets = std::vector<Blocks>;
using Parts = std::vector<std::int64_t>;

std::int64_t length_of(const Blocks& blocks) {
    return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
}

std::vector<std::int64_t> owned(const std::vector<OwnedRange>& ranges, std::size_t ranks) {
    std::vector<std::int64_t> owned(ranks, 0);
    for (const OwnedRange& range : ranges)
        owned.at(static_cast<std::size_t>(range.owner)) += range.length;
    return owned;
}

// In order, without gaps, none empty, none beyond its bucket, all ending where blocks do.
void expect_covers(const std::vector<OwnedRange>& ranges, const Buckets& buckets) {
    std::int64_t end = 0;
    std::size_t next = 0;
    for (const Blocks& blocks : buckets) {
        std::vector<std::int64_t> ends;
        for (const std::int64_t block : blocks) {
            end += block;
            ends.push_back(end);
        }
        std::int64_t at = end - length_of(blocks);
        while (at < end) {
            ASSERT_LT(next, ranges.size());
            ASSERT_EQ(ranges[next].begin, at);
            ASSERT_GT(ranges[next].length, 0);
            at += ranges[next++].length;
            ASSERT_NE(std::find(ends.begin(), ends.end(), at), ends.end()) << at;
        }
        ASSERT_EQ(at, end);
    }
    EXPECT_EQ(next, ranges.size());
}

TEST(CutShardsTest, ABucketIsCutInProportion) {
    const Buckets buckets{Blocks(8, 10)};

    const auto ranges = cut_shards(buckets, Parts{1, 2, 1});

    EXPECT_THAT(ranges,
                ElementsAre(OwnedRange{0, 0, 20}, OwnedRange{1, 20, 40}, OwnedRange{2, 60, 20}));
}

TEST(CutShardsTest, ARankWithoutAPartOwnsNothingAndOneWithAllOwnsAll) {
    const Buckets buckets{Blocks(3, 7), {1}, Blocks(5, 11)};

    EXPECT_THAT(owned(cut_shards(buckets, Parts{0, 5, 0}), 3), ElementsAre(0, 77, 0));
    EXPECT_EQ(owned(cut_shards(buckets, Parts{3, 0, 2}), 3)[1], 0);
}

TEST(CutShardsTest, ABucketOfFewBlocksGoesWholeToTheRankFurthestBelowItsPart) {
    const Buckets buckets{{16}, {16}, {16}, {16}};

    const auto ranges = cut_shards(buckets, Parts{1, 2, 1});

    EXPECT_THAT(owned(ranges, 3), ElementsAre(16, 32, 16));
    EXPECT_EQ(ranges.front().owner, 1);
}

// The borders of a bucket that is one large block cannot follow the parts; those after it do.
TEST(CutShardsTest, LaterBucketsMakeUpForWhatEarlierOnesGave) {
    Buckets buckets{{1000}};
    for (int i = 0; i < 40; ++i)
        buckets.push_back(Blocks(10, 10));

    EXPECT_THAT(owned(cut_shards(buckets, Parts{1, 1}), 2), ElementsAre(2500, 2500));
}

TEST(CutShardsTest, AnyBucketsAreCoveredAndEachRankIsNearItsPart) {
    std::mt19937_64 random{5};
    const auto below = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    for (int trial = 0; trial < 300; ++trial) {
        Buckets buckets(1 + static_cast<std::size_t>(below(12)));
        std::int64_t longest = 0;
        for (Blocks& blocks : buckets) {
            blocks.resize(1 + static_cast<std::size_t>(below(30)));
            for (std::int64_t& block : blocks)
                block = below(4) == 0 ? 16 : 16384;
            longest = std::max(longest, length_of(blocks));
        }
        Parts parts(1 + static_cast<std::size_t>(below(6)));
        for (std::int64_t& part : parts)
            part = below(4) == 0 ? 0 : below(100000);
        parts[static_cast<std::size_t>(below(std::ssize(parts)))] += 1;

        const auto ranges = cut_shards(buckets, parts);

        expect_covers(ranges, buckets);
        const auto sums = owned(ranges, parts.size());
        const double all =
            static_cast<double>(length_of(sums)) / static_cast<double>(length_of(parts));
        for (std::size_t r = 0; r < parts.size(); ++r)
            EXPECT_LE(std::abs(static_cast<double>(sums[r]) - all * static_cast<double>(parts[r])),
                      static_cast<double>(longest))
                << "rank " << r << " of " << parts.size();
    }
}

}  // namespace
}  // namespace hetseq
