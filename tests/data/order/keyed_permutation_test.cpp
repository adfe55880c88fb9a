#include "hetseq/data/order/keyed_permutation.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

std::vector<std::int64_t> elements(const KeyedPermutation& permutation) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < permutation.size(); ++i)
        all.push_back(permutation(i));
    return all;
}

TEST(KeyedPermutationTest, IsABijectionForSmallSizes) {
    for (std::int64_t n = 1; n <= 70; ++n) {
        for (std::uint64_t key = 0; key < 5; ++key) {
            const KeyedPermutation permutation{n, key};

            const auto all = elements(permutation);

            const std::set<std::int64_t> distinct(all.begin(), all.end());
            EXPECT_EQ(std::ssize(distinct), n);
            EXPECT_EQ(*distinct.begin(), 0);
            EXPECT_EQ(*distinct.rbegin(), n - 1);
        }
    }
}

TEST(KeyedPermutationTest, IsABijectionForALargeSize) {
    const std::int64_t n = 1'000'003;
    const KeyedPermutation permutation{n, 7};
    std::vector<bool> seen(n, false);

    for (std::int64_t i = 0; i < n; ++i)
        seen[static_cast<std::size_t>(permutation(i))] = true;

    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), n);
}

TEST(KeyedPermutationTest, InverseUndoesIt) {
    for (const std::int64_t n :
         {std::int64_t{1}, std::int64_t{10}, std::int64_t{65'537}, std::int64_t{1} << 50}) {
        const KeyedPermutation permutation{n, 42};
        for (std::int64_t i = 0; i < std::min<std::int64_t>(n, 500); ++i) {
            const std::int64_t index = i * (n / std::min<std::int64_t>(n, 500));
            EXPECT_EQ(permutation.inverse(permutation(index)), index);
        }
    }
}

TEST(KeyedPermutationTest, KeysGiveUnlikePermutations) {
    const KeyedPermutation first{1000, 1};
    const KeyedPermutation second{1000, 2};
    int equal = 0;

    for (std::int64_t i = 0; i < 1000; ++i)
        equal += first(i) == second(i);

    EXPECT_LT(equal, 15);  // two random permutations agree in one place on average
}

TEST(KeyedPermutationTest, ReachesEveryPermutationOfThree) {
    std::set<std::vector<std::int64_t>> reached;

    for (std::uint64_t key = 0; key < 200; ++key)
        reached.insert(elements(KeyedPermutation{3, key}));

    EXPECT_EQ(reached.size(), 6U);
}

// Each element lands in each quarter of the indices equally often: 4 quarters, 4,000 keys, so
// a count's standard deviation is sqrt(4000 * 1/4 * 3/4) = 27.
TEST(KeyedPermutationTest, SpreadsElementsEvenly) {
    for (const std::int64_t element : {0, 1, 50, 99}) {
        std::vector<int> quarter(4, 0);
        for (std::uint64_t key = 0; key < 4000; ++key)
            ++quarter[static_cast<std::size_t>(KeyedPermutation(100, key).inverse(element) / 25)];
        for (const int count : quarter)
            EXPECT_NEAR(count, 1000, 5 * 27);
    }
}

TEST(KeyedPermutationTest, IsTheSameOnEveryMachine) {
    // From an independent implementation in Python; another order would break resumed runs.
    EXPECT_EQ(elements(KeyedPermutation(10, 1)),
              (std::vector<std::int64_t>{7, 8, 9, 0, 3, 4, 1, 5, 2, 6}));
}

}  // namespace
}  // namespace hetseq
