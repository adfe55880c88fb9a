#include "hetseq/data/order/keyed_draws.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(KeyedDrawsTest, NumbersLieInTheirRangeAndAreUniform) {
    KeyedDraws draws{7};
    std::vector<int> counts(10);
    double sum = 0;
    for (int i = 0; i < 100'000; ++i) {
        ++counts[static_cast<std::size_t>(draws.below(10))];
        const double fraction = draws.fraction();
        ASSERT_GE(fraction, 0);
        ASSERT_LT(fraction, 1);
        sum += fraction;
    }
    // Five standard deviations of a binomial are 474; of the sum, 456.
    for (const int count : counts)
        EXPECT_NEAR(count, 10'000, 474);
    EXPECT_NEAR(sum, 50'000, 456);
}

TEST(KeyedDrawsTest, TheKeyDecidesThem) {
    KeyedDraws first{1}, same{1}, other{2};
    int equal = 0;
    for (int i = 0; i < 100; ++i) {
        const std::int64_t number = first.below(1'000'000);
        EXPECT_EQ(number, same.below(1'000'000));
        equal += number == other.below(1'000'000) ? 1 : 0;
    }
    EXPECT_LT(equal, 3);
}

}  // namespace
}  // namespace hetseq
