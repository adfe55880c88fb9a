#include "hetseq/train/record/distribution.hpp"

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

std::vector<double> drawn(std::size_t count, const std::function<double(std::mt19937&)>& draw) {
    std::mt19937 random(7);
    std::vector<double> values(count);
    for (double& value : values)
        value = draw(random);
    return values;
}

Distribution distribution_of(const std::vector<double>& values) {
    Distribution distribution;
    for (const double value : values)
        distribution.add(value);
    return distribution;
}

void expect_near(const Spread& spread, const Spread& exact, double relative) {
    EXPECT_NEAR(spread.median, exact.median, relative * exact.median);
    EXPECT_NEAR(spread.p10, exact.p10, relative * exact.p10);
    EXPECT_NEAR(spread.p90, exact.p90, relative * exact.p90);
}

TEST(DistributionTest, QuantilesOfManyValuesAreWithinHalfAPercent) {
    const std::vector<std::function<double(std::mt19937&)>> shapes{
        [](auto& random) { return std::lognormal_distribution<>(5, 0.05)(random); },
        [](auto& random) { return std::lognormal_distribution<>(0, 4)(random); },
        [](auto& random) { return std::uniform_real_distribution<>(0, 1e-3)(random); },
        // Two kinds of updates.
        [](auto& random) {
            return std::bernoulli_distribution(0.3)(random)
                       ? 700.0
                       : std::normal_distribution<>(200, 3)(random);
        }};
    for (const auto& shape : shapes) {
        const std::vector<double> values = drawn(20000, shape);

        const Distribution distribution = distribution_of(values);

        EXPECT_EQ(distribution.count(), 20000);
        expect_near(distribution.spread(), spread_of(values), 0.005);
    }
}

TEST(DistributionTest, QuantilesOfFewValuesAreExact) {
    const std::vector<double> values =
        drawn(1000, [](auto& random) { return std::exponential_distribution<>(1)(random); });

    expect_near(distribution_of(values).spread(), spread_of(values), 0);
    EXPECT_EQ(Distribution{}.spread().median, 0);
}

TEST(DistributionTest, MostlyZerosHaveAMedianOfZero) {
    std::vector<double> values(1500, 0);
    values.resize(2000, 3);

    const Spread spread = distribution_of(values).spread();

    EXPECT_EQ(spread.median, 0);
    EXPECT_NEAR(spread.p90, 3, 0.01);
}

TEST(DistributionTest, KeepsAsMuchOfAMillionValuesAsOfTenThousand) {
    const auto draw = [](auto& random) {
        return std::uniform_real_distribution<>(50, 500)(random);
    };

    const std::size_t kept = distribution_of(drawn(10000, draw)).kept();

    EXPECT_LT(kept, 600U);  // ln 10 / ln 1.004 bins
    EXPECT_LE(distribution_of(drawn(1000000, draw)).kept(), kept + 1);
    EXPECT_LT(distribution_of(drawn(100000,
                                    [](auto& random) {
                                        return std::exp(
                                            std::uniform_real_distribution<>(-600, 600)(random));
                                    }))
                  .kept(),
              14000U);
}

}  // namespace
}  // namespace hetseq
