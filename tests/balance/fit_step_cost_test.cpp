#include "hetseq/balance/fit_step_cost.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

namespace hetseq {
namespace {

constexpr auto no_limit = std::numeric_limits<std::int64_t>::max();

// The time of `cost` for each number of units.
std::vector<StepSample> samples_of(const StepCost& cost, const std::vector<std::int64_t>& units) {
    std::vector<StepSample> samples;
    for (const std::int64_t count : units)
        samples.push_back(
            {static_cast<double>(count), 1 + (count - 1) / cost.micro_batch, cost.time_ms(count)});
    return samples;
}

void expect_times(const StepCost& cost, std::span<const StepSample> samples, double tolerance) {
    for (const StepSample& sample : samples)
        EXPECT_NEAR(cost.time_ms(sample.units) / sample.ms, 1, tolerance) << sample.units;
}

TEST(FitStepCostTest, RecoversALineExactly) {
    std::mt19937 random(5);
    std::uniform_real_distribution<double> draw(0, 10);

    for (int instance = 0; instance < 500; ++instance) {
        const StepCost truth{.start_ms = draw(random),
                             .micro_batch_ms = draw(random),
                             .unit_ms = draw(random),
                             .micro_batch = 16};

        const StepCost cost = fit_step_cost(samples_of(truth, {1, 5, 16, 24, 32, 61}), 16, 99);

        EXPECT_TRUE(cost.table.empty());
        EXPECT_NEAR(cost.start_ms, truth.start_ms, 1e-8);
        EXPECT_NEAR(cost.micro_batch_ms, truth.micro_batch_ms, 1e-8);
        EXPECT_NEAR(cost.unit_ms, truth.unit_ms, 1e-8);
        EXPECT_EQ(cost.micro_batch, 16);
        EXPECT_EQ(cost.max_units, 99);
    }
}

TEST(FitStepCostTest, RecoversALineWithZeros) {
    const std::vector<StepCost> lines{
        {.unit_ms = 2, .micro_batch = 8},
        {.micro_batch_ms = 3, .unit_ms = 0, .micro_batch = 8},
        {.start_ms = 4, .unit_ms = 0.5, .micro_batch = 8},
        {.start_ms = 4, .micro_batch_ms = 2, .unit_ms = 0, .micro_batch = 8}};

    for (const StepCost& truth : lines) {
        const std::vector<StepSample> samples = samples_of(truth, {1, 4, 8, 12, 16, 24});

        const StepCost cost = fit_step_cost(samples, 8, no_limit);

        EXPECT_TRUE(cost.table.empty());
        EXPECT_NEAR(cost.start_ms, truth.start_ms, 1e-9);
        EXPECT_NEAR(cost.micro_batch_ms, truth.micro_batch_ms, 1e-9);
        EXPECT_NEAR(cost.unit_ms, truth.unit_ms, 1e-9);
    }
}

TEST(FitStepCostTest, OnePointIsProportional) {
    const StepCost cost = fit_step_cost(std::vector<StepSample>{{8, 1, 20}}, 8, no_limit);

    EXPECT_DOUBLE_EQ(cost.start_ms, 0);
    EXPECT_DOUBLE_EQ(cost.micro_batch_ms, 0);
    EXPECT_DOUBLE_EQ(cost.unit_ms, 2.5);
}

TEST(FitStepCostTest, TwoSingleMicroBatchesGiveTheFixedPartToEach) {
    const StepCost cost =
        fit_step_cost(std::vector<StepSample>{{8, 1, 10}, {16, 1, 14}}, 16, no_limit);

    EXPECT_NEAR(cost.start_ms, 0, 1e-12);
    EXPECT_NEAR(cost.micro_batch_ms, 6, 1e-9);
    EXPECT_NEAR(cost.unit_ms, 0.5, 1e-9);
    EXPECT_NEAR(cost.time_ms(32), 28, 1e-9);
}

TEST(FitStepCostTest, EqualTimesOfOneMicroBatchAreAMicroBatchs) {
    const StepCost cost =
        fit_step_cost(std::vector<StepSample>{{4, 1, 10}, {8, 1, 10}, {16, 1, 10}}, 16, no_limit);

    EXPECT_NEAR(cost.micro_batch_ms, 10, 1e-9);
    EXPECT_NEAR(cost.time_ms(17), 20, 1e-9);
}

TEST(FitStepCostTest, FullMicroBatchesAloneAreProportional) {
    const StepCost cost =
        fit_step_cost(std::vector<StepSample>{{8, 1, 10}, {16, 2, 20}, {24, 3, 30}}, 8, no_limit);

    EXPECT_NEAR(cost.unit_ms, 1.25, 1e-12);
    EXPECT_DOUBLE_EQ(cost.micro_batch_ms, 0);
}

TEST(FitStepCostTest, OutliersAmongRepeatsDoNotCount) {
    const StepCost truth{.start_ms = 3, .micro_batch_ms = 2, .unit_ms = 0.4, .micro_batch = 16};
    std::mt19937 random(3);
    std::lognormal_distribution<double> noise(0, 0.03);
    std::vector<StepSample> samples;
    for (int repeat = 0; repeat < 9; ++repeat)
        for (StepSample sample : samples_of(truth, {2, 4, 8, 16, 32, 48})) {
            sample.ms *= noise(random) * (repeat == 4 ? 20 : 1);
            samples.push_back(sample);
        }

    const StepCost cost = fit_step_cost(samples, 16, no_limit);

    EXPECT_TRUE(cost.table.empty());
    expect_times(cost, samples_of(truth, {1, 10, 16, 20, 40, 64}), 0.05);
}

// The times are those of a host of a fifth of a core: full micro-batches that scatter by a fifth.
TEST(FitStepCostTest, NoiseMakesNoTable) {
    std::vector<StepSample> samples;
    for (const double units : {16.0, 32.0, 64.0})
        for (const double noise : {0.98, 1.0, 1.02})
            samples.push_back({units, 1, noise * 3.3 * units});
    for (const double noise : {1.0, 1.1, 1.5})
        samples.push_back({128, 1, noise * 3.3 * 128});

    const StepCost noisy = fit_step_cost(samples, 128, no_limit);
    EXPECT_TRUE(noisy.table.empty());
    EXPECT_NEAR(noisy.time_ms(192), 3.3 * 192, 0.05 * 3.3 * 192);

    for (int repeat = 0; repeat < 20; ++repeat)
        samples.push_back({128, 1, (1.3 + 0.01 * (repeat % 3)) * 3.3 * 128});
    EXPECT_FALSE(fit_step_cost(samples, 128, no_limit).table.empty()) << "no noise any more";
}

TEST(FitStepCostTest, AStaircaseDeviceBecomesATable) {
    // 10 ms for each started wave of 8 units, in one micro-batch.
    std::vector<StepSample> samples;
    for (const std::int64_t units : {1, 4, 8, 9, 12, 16, 17, 24})
        samples.push_back(
            {static_cast<double>(units), 1, 10 * std::ceil(static_cast<double>(units) / 8)});

    const StepCost cost = fit_step_cost(samples, 24, no_limit);

    EXPECT_FALSE(cost.table.empty());
    expect_times(cost, samples, 1e-12);
    EXPECT_DOUBLE_EQ(cost.time_ms(2), 10);
    EXPECT_GT(cost.time_ms(48), 45);
}

TEST(FitStepCostTest, ATimeThatGrowsFasterThanTheUnitsBecomesATable) {
    const std::vector<StepSample> samples{{8, 1, 10}, {16, 1, 40}};

    const StepCost cost = fit_step_cost(samples, 16, no_limit);

    EXPECT_FALSE(cost.table.empty());
    expect_times(cost, samples, 1e-12);
    EXPECT_DOUBLE_EQ(cost.time_ms(4), 5);
}

TEST(FitStepCostTest, FallingTimesGiveAMonotoneTable) {
    const StepCost cost = fit_step_cost(
        std::vector<StepSample>{{4, 1, 10}, {8, 1, 30}, {12, 1, 20}, {16, 1, 60}}, 16, no_limit);

    EXPECT_FALSE(cost.table.empty());
    EXPECT_DOUBLE_EQ(cost.time_ms(8), 25);
    EXPECT_DOUBLE_EQ(cost.time_ms(12), 25);
    for (std::int64_t units = 1; units < 40; ++units)
        EXPECT_LE(cost.time_ms(units - 1), cost.time_ms(units));
}

TEST(FitStepCostTest, TheTableHoldsOnlyWhatTheMicroBatchProduces) {
    // 16 units were also measured in pieces of 4, as they will not be computed.
    const std::vector<StepSample> samples{{4, 1, 10}, {8, 1, 11}, {16, 1, 40}, {16, 4, 41}};

    const StepCost cost = fit_step_cost(samples, 16, no_limit);

    ASSERT_FALSE(cost.table.empty());
    EXPECT_EQ(cost.table.points().size(), 4U);
    EXPECT_DOUBLE_EQ(cost.time_ms(16), 40);
}

TEST(FitStepCostTest, ARankWithoutWorkNeedsNoSamples) {
    EXPECT_EQ(fit_step_cost({}, 0, 0).units_within(1e9, 10), 0);
}

TEST(FitStepCostTest, RefusesWhatIsNoSample) {
    const auto fit = [](const StepSample& sample) {
        return fit_step_cost(std::vector<StepSample>{sample}, 8, no_limit);
    };

    EXPECT_THROW(fit_step_cost({}, 8, no_limit), InternalError);
    EXPECT_THROW(fit({0, 1, 1}), InternalError);
    EXPECT_THROW(fit({1, 0, 1}), InternalError);
    EXPECT_THROW(fit({1, 1, 0}), InternalError);
    EXPECT_THROW(fit({1, 1, std::numeric_limits<double>::quiet_NaN()}), InternalError);
}

}  // namespace
}  // namespace hetseq
