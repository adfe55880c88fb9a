#include "hetseq/optim/schedule.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

namespace hetseq {
namespace {

ScheduleOptions options(double lr, std::int64_t warmup, std::int64_t total = 0) {
    ScheduleOptions options;
    options.lr = lr;
    options.warmup_updates = warmup;
    options.total_updates = total;
    return options;
}

TEST(ScheduleTest, WarmUpIsLinearFromItsInitialRate) {
    ScheduleOptions o = options(1, 4, 100);
    o.warmup_init_lr = 0.2;
    for (const auto& make : {fixed_schedule,
                             polynomial_decay_schedule,
                             inverse_sqrt_schedule,
                             step_schedule,
                             exponential_schedule,
                             cosine_schedule}) {
        const Schedule schedule = make(o);

        EXPECT_DOUBLE_EQ(schedule(0, 0), 0.2);
        EXPECT_DOUBLE_EQ(schedule(1, 0), 0.4);
        EXPECT_DOUBLE_EQ(schedule(3, 0), 0.8);
        EXPECT_DOUBLE_EQ(schedule(4, 0), 1.0);
    }
}

TEST(ScheduleTest, FixedStaysAtItsRate) {
    const Schedule schedule = fixed_schedule(options(0.3, 0));

    EXPECT_DOUBLE_EQ(schedule(0, 0), 0.3);
    EXPECT_DOUBLE_EQ(schedule(1000000, 50), 0.3);
}

TEST(ScheduleTest, PolynomialDecayEndsAtTheEndRate) {
    ScheduleOptions o = options(1, 10, 110);
    o.end_lr = 0.1;
    o.power = 2;

    const Schedule schedule = polynomial_decay_schedule(o);

    EXPECT_DOUBLE_EQ(schedule(10, 0), 1.0);
    EXPECT_DOUBLE_EQ(schedule(60, 0), 0.1 + 0.9 * 0.25);
    EXPECT_DOUBLE_EQ(schedule(110, 0), 0.1);
    EXPECT_DOUBLE_EQ(schedule(5000, 0), 0.1);
}

// transformers' get_linear_schedule_with_warmup: (total - u) / (total - warmup).
TEST(ScheduleTest, PowerOneIsTheLinearDecayOfBert) {
    const Schedule schedule = polynomial_decay_schedule(options(1, 100, 1000));

    for (const std::int64_t u : {100, 101, 550, 999, 1000})
        EXPECT_NEAR(schedule(u, 0), static_cast<double>(1000 - u) / 900, 1e-15);
}

// fairseq's InverseSquareRootSchedule: lr * sqrt(warmup) / sqrt(u).
TEST(ScheduleTest, InverseSquareRootFollowsFairseq) {
    const Schedule schedule = inverse_sqrt_schedule(options(5e-4, 4000));

    EXPECT_NEAR(schedule(4000, 0), 5e-4, 1e-18);
    EXPECT_NEAR(schedule(16000, 0), 2.5e-4, 1e-18);
}

TEST(ScheduleTest, InverseSquareRootWithoutWarmUpBeginsAtItsRate) {
    const Schedule schedule = inverse_sqrt_schedule(options(1, 0));

    EXPECT_DOUBLE_EQ(schedule(0, 0), 1.0);
    EXPECT_DOUBLE_EQ(schedule(1, 0), 1.0);
    EXPECT_DOUBLE_EQ(schedule(4, 0), 0.5);
}

TEST(ScheduleTest, StepMultipliesEverySoManyEpochs) {
    ScheduleOptions o = options(1, 0);
    o.gamma = 0.5;
    o.step_epochs = 3;

    const Schedule schedule = step_schedule(o);

    EXPECT_DOUBLE_EQ(schedule(0, 2), 1.0);
    EXPECT_DOUBLE_EQ(schedule(0, 3), 0.5);
    EXPECT_DOUBLE_EQ(schedule(9999, 8), 0.25);
}

TEST(ScheduleTest, ExponentialMultipliesEveryEpoch) {
    ScheduleOptions o = options(2, 0);
    o.gamma = 0.7;

    const Schedule schedule = exponential_schedule(o);

    EXPECT_DOUBLE_EQ(schedule(0, 0), 2.0);
    EXPECT_DOUBLE_EQ(schedule(0, 3), 2 * std::pow(0.7, 3));
}

TEST(ScheduleTest, CosineFallsFromItsRateToTheEndRate) {
    ScheduleOptions o = options(1, 10, 110);
    o.end_lr = 0.2;

    const Schedule schedule = cosine_schedule(o);

    EXPECT_DOUBLE_EQ(schedule(10, 0), 1.0);
    EXPECT_NEAR(schedule(60, 0), 0.6, 1e-15);
    EXPECT_NEAR(schedule(35, 0), 0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2, 1e-15);
    EXPECT_NEAR(schedule(110, 0), 0.2, 1e-15);
    EXPECT_NEAR(schedule(111, 0), 0.2, 1e-15);
}

TEST(ScheduleTest, NoUpdateLeftForTheDecayIsToldByTheOptionThatTheUserGave) {
    ScheduleOptions o = options(1, 200, 120);
    o.ended_by = "--max-update 120";

    try {
        polynomial_decay_schedule(o);
        ADD_FAILURE() << "it was accepted";
    } catch (const BadConfig& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("by --max-update 120, and --warmup-updates is 200"), std::string::npos)
            << text;
        EXPECT_NE(text.find("--stop-after N or --dry-run"), std::string::npos) << text;
        EXPECT_EQ(text.find("--total-num-update"), std::string::npos) << text;
    }
}

struct BadSchedule {
    std::string flag;
    Schedule (*make)(const ScheduleOptions&);
    void (*spoil)(ScheduleOptions&);
};

TEST(ScheduleTest, BadValuesAreNamedByTheirOption) {
    const BadSchedule cases[] = {
        {"--lr", fixed_schedule, [](ScheduleOptions& o) { o.lr = -1; }},
        {"--lr", fixed_schedule, [](ScheduleOptions& o) { o.lr = std::nan(""); }},
        {"--warmup-updates", fixed_schedule, [](ScheduleOptions& o) { o.warmup_updates = -1; }},
        {"--warmup-init-lr", fixed_schedule, [](ScheduleOptions& o) { o.warmup_init_lr = -1; }},
        {"--total-num-update",
         polynomial_decay_schedule,
         [](ScheduleOptions& o) { o.total_updates = 10; }},
        {"--total-num-update", cosine_schedule, [](ScheduleOptions& o) { o.total_updates = 0; }},
        {"--end-learning-rate", cosine_schedule, [](ScheduleOptions& o) { o.end_lr = -1; }},
        {"--power", polynomial_decay_schedule, [](ScheduleOptions& o) { o.power = 0; }},
        {"--lr-shrink", step_schedule, [](ScheduleOptions& o) { o.gamma = 0; }},
        {"--lr-shrink", exponential_schedule, [](ScheduleOptions& o) { o.gamma = -0.1; }},
        {"--lr-step-epochs", step_schedule, [](ScheduleOptions& o) { o.step_epochs = 0; }},
    };
    for (const auto& [flag, make, spoil] : cases) {
        ScheduleOptions o = options(1, 10, 100);
        ASSERT_NO_THROW(make(o));
        spoil(o);
        try {
            make(o);
            ADD_FAILURE() << flag << " was accepted";
        } catch (const BadConfig& error) {
            EXPECT_NE(std::string(error.what()).find(flag), std::string::npos) << error.what();
        }
    }
}

}  // namespace
}  // namespace hetseq
