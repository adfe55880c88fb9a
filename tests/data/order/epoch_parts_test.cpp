#include "hetseq/data/order/epoch_parts.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/data/order/global_order.hpp"

namespace hetseq {
namespace {

struct MixedCase {
    std::vector<SampleSet> sets;
    std::int64_t block_length = 4;
    std::int64_t shuffle_blocks = 2;

    std::int64_t samples() const {
        std::int64_t sum = 0;
        for (const SampleSet& set : sets)
            sum += set.samples();
        return sum;
    }
    GlobalOrder order(std::int64_t epoch, std::uint64_t seed = 3) const {
        return {{.samples = samples(),
                 .block_length = block_length,
                 .shuffle_blocks = shuffle_blocks,
                 .sets = std::make_shared<const std::vector<SampleSet>>(sets)},
                seed,
                epoch};
    }
    std::vector<std::int64_t> visits(std::int64_t epoch) const {
        std::vector<std::int64_t> visits(static_cast<std::size_t>(samples()), 0);
        const GlobalOrder of = order(epoch);
        for (std::int64_t position = 0; position < of.size(); ++position)
            ++visits[static_cast<std::size_t>(of(position))];
        return visits;
    }
};

// Three sets: one sample, fewer than a block, and more; the last one lies on both sides of them.
std::vector<MixedCase> mixed_cases() {
    std::vector<MixedCase> cases;
    for (const std::int64_t block_length : {1, 4, 7, 64})
        for (const std::int64_t shuffle_blocks : {1, 3, 100})
            for (const std::vector<std::int64_t>& takes :
                 {std::vector<std::int64_t>{1, 1, 1}, {3, 2, 40}, {2, 7, 5}, {1, 12, 17}})
                cases.push_back({{{{{9, 10}}, takes[0]},
                                  {{{10, 13}}, takes[1]},
                                  {{{0, 9}, {13, 30}}, takes[2]}},
                                 block_length,
                                 shuffle_blocks});
    return cases;
}

// The times that the samples of `set` were taken.
std::vector<std::int64_t> of_set(const SampleSet& set, const std::vector<std::int64_t>& visits) {
    std::vector<std::int64_t> own;
    for (const SampleRange& range : set.ranges)
        own.insert(own.end(), visits.begin() + range.begin, visits.begin() + range.end);
    return own;
}

TEST(EpochPartsTest, EachSampleOfASetComesAsOftenAsTheOthersToWithinOne) {
    for (const MixedCase& mixed : mixed_cases()) {
        std::vector<std::int64_t> sum(static_cast<std::size_t>(mixed.samples()), 0);
        for (std::int64_t epoch = 0; epoch < 30; ++epoch) {
            const std::vector<std::int64_t> visits = mixed.visits(epoch);
            std::transform(sum.begin(), sum.end(), visits.begin(), sum.begin(), std::plus<>());
            for (const SampleSet& set : mixed.sets) {
                const std::vector<std::int64_t> own = of_set(set, visits);
                const std::int64_t floor = set.samples_of_epoch / set.samples();
                const bool has_rest = set.samples_of_epoch % set.samples() != 0;
                ASSERT_EQ(std::accumulate(own.begin(), own.end(), std::int64_t{0}),
                          set.samples_of_epoch);
                ASSERT_EQ(*std::min_element(own.begin(), own.end()), floor);
                ASSERT_EQ(*std::max_element(own.begin(), own.end()), floor + (has_rest ? 1 : 0));
                const std::vector<std::int64_t> so_far = of_set(set, sum);
                ASSERT_LE(*std::max_element(so_far.begin(), so_far.end()),
                          *std::min_element(so_far.begin(), so_far.end()) + 1);
            }
        }
    }
}

TEST(EpochPartsTest, EveryGroupHoldsItsPartsAndNamesTheirBlocks) {
    for (const MixedCase& mixed : mixed_cases())
        for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
            const GlobalOrder order = mixed.order(epoch);
            std::int64_t covered = 0;
            ASSERT_LE(order.groups(),
                      (most_parts(mixed.sets, mixed.block_length) + mixed.shuffle_blocks - 1) /
                          std::min(mixed.shuffle_blocks, order.size()));
            for (std::int64_t group = 0; group < order.groups(); ++group) {
                std::multiset<std::int64_t> expected, found;
                for (const BlockRange& part : order.group_parts(group))
                    for (std::int64_t i = part.samples.begin; i < part.samples.end; ++i) {
                        ASSERT_EQ(i / mixed.block_length, part.block);
                        expected.insert(i);
                    }
                ASSERT_EQ(order.group_begin(group), covered);
                for (; covered < order.group_end(group); ++covered) {
                    ASSERT_EQ(order.group_of(covered), group);
                    found.insert(order(covered));
                }
                ASSERT_EQ(found, expected);
            }
            ASSERT_EQ(covered, order.size());
        }
}

TEST(EpochPartsTest, FindsTheGroupsOfABlockOnBothSides) {
    for (const MixedCase& mixed : mixed_cases()) {
        const GlobalOrder order = mixed.order(1);
        std::vector<std::set<std::int64_t>> groups(static_cast<std::size_t>(mixed.samples()));
        for (std::int64_t group = 0; group < order.groups(); ++group)
            for (const std::int64_t block : order.group_blocks(group))
                groups[static_cast<std::size_t>(block)].insert(group);
        for (std::int64_t block = 0; block < mixed.samples(); ++block)
            for (std::int64_t group = 0; group < order.groups(); ++group) {
                const std::set<std::int64_t>& own = groups[static_cast<std::size_t>(block)];
                const auto next = own.lower_bound(group);
                const auto behind = own.upper_bound(group);
                ASSERT_EQ(order.next_group_of_block(block, group),
                          next == own.end() ? std::nullopt : std::optional{*next});
                if (!own.empty()) {
                    ASSERT_EQ(order.group_of_block(block, group),
                              behind == own.begin() ? *own.begin() : *std::prev(behind));
                }
            }
    }
}

TEST(EpochPartsTest, SlicesOfTheNextEpochsAreOthersAndOrdersDependOnSeedAndEpoch) {
    const MixedCase mixed{{{{{0, 64}}, 32}, {{{64, 96}}, 64}}, 4, 4};

    EXPECT_NE(mixed.visits(0), mixed.visits(1));
    EXPECT_EQ(mixed.visits(0), mixed.visits(2));
    const GlobalOrder first = mixed.order(0), again = mixed.order(0), second = mixed.order(2),
                      other = mixed.order(0, 4);
    std::int64_t same_epoch = 0, same_seed = 0;
    for (std::int64_t position = 0; position < first.size(); ++position) {
        EXPECT_EQ(first(position), again(position));
        same_epoch += first(position) == second(position) ? 1 : 0;
        same_seed += first(position) == other(position) ? 1 : 0;
    }
    EXPECT_LT(same_epoch, 24);
    EXPECT_LT(same_seed, 24);
}

TEST(EpochPartsTest, WithoutShufflingEachSampleComesOnce) {
    const MixedCase mixed{{{{{0, 10}}, 35}}, 4, 2};
    const GlobalOrder order{{.samples = 10,
                             .block_length = 4,
                             .sets = std::make_shared<const std::vector<SampleSet>>(mixed.sets)},
                            3,
                            0,
                            Shuffle::no};

    ASSERT_EQ(order.size(), 10);
    for (std::int64_t position = 0; position < 10; ++position)
        EXPECT_EQ(order(position), position);
}

}  // namespace
}  // namespace hetseq
