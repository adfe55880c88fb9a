#include "hetseq/train/validation/best_by.hpp"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Evaluation evaluation(double label_loss, double accuracy) {
    return {.losses = {{"token", 1}, {"label", label_loss}}, .metrics = {{"accuracy", accuracy}}};
}

template <class Work>
std::string error_of(const Work& work) {
    try {
        work();
    } catch (const BadConfig& error) {
        return error.what();
    }
    return "no error";
}

TEST(BestByTest, IsReadAsItIsWritten) {
    for (const char* text : {"loss:min", "accuracy:max", "a:b:min"})
        EXPECT_EQ(to_string(parse_best_by(text)), text);
    EXPECT_EQ(to_string(BestBy{}), "loss:min");
}

TEST(BestByTest, ADirectionIsNeeded) {
    for (const char* text : {"", "loss", "loss:", "loss:most", ":min", "min"})
        EXPECT_THAT(error_of([&] { parse_best_by(text); }), HasSubstr("NAME:min or NAME:max"))
            << text;
}

TEST(BestByTest, TheModelsNamesAreListedWhereItHasNoSuch) {
    const std::vector<std::string> names{"token", "label", "token_accuracy", "label_accuracy"};
    for (const char* name : {"loss", "token", "label", "token_accuracy", "label_accuracy"})
        EXPECT_NO_THROW(check_best_by({name}, names)) << name;

    EXPECT_THAT(error_of([&] { check_best_by({"accuracy"}, names); }),
                HasSubstr("loss, token, label, token_accuracy, label_accuracy"));
    EXPECT_THAT(error_of([&] {
                    check_best_by({"accuracy"}, {"loss", "nll"});
                }),
                HasSubstr("its names are loss, nll"));
}

TEST(BestByTest, ATermNamedLossIsListedOnce) {
    EXPECT_THAT(error_of([] {
                    check_best_by({"accuracy"}, {"loss", "nll"});
                }),
                HasSubstr("its names are loss, nll)"));
}

TEST(BestByTest, TheLowestOrTheHighestIsBest) {
    const Evaluation low = evaluation(2, 0.5), high = evaluation(3, 0.75);
    for (const char* name : {"loss", "label", "accuracy"}) {
        EXPECT_TRUE(is_better(low, high, {name, Direction::min})) << name;
        EXPECT_TRUE(is_better(high, low, {name, Direction::max})) << name;
        EXPECT_FALSE(is_better(low, low, {name, Direction::min})) << name;
        EXPECT_FALSE(is_better(low, low, {name, Direction::max})) << name;
    }
}

TEST(BestByTest, WhatIsNoNumberIsNeverBetter) {
    const Evaluation none = evaluation(2, nan), some = evaluation(2, 0.1);
    const BestBy by{"accuracy", Direction::max};
    EXPECT_FALSE(is_better(none, std::nullopt, by));
    EXPECT_TRUE(is_better(some, std::nullopt, by));
    EXPECT_TRUE(is_better(some, none, by));
    EXPECT_FALSE(is_better(none, some, by));
    EXPECT_FALSE(is_better(some, std::nullopt, {"unknown", Direction::max}));
}

TEST(BestByTest, SaysWhyNoValidationIsTheBest) {
    const BestBy by{"accuracy", Direction::max};
    EXPECT_EQ(why_never_best(evaluation(nan, 0.1), by), "");
    EXPECT_THAT(why_never_best(evaluation(2, nan), by),
                AllOf(StartsWith("accuracy is nan"), HasSubstr("--best-by accuracy:max")));
}

TEST(BestByTest, SaysWhereNothingHasWeight) {
    Evaluation labels = evaluation(2, 0.1);
    labels.losses[0] = {.name = "token", .value = nan, .has_weight = false};

    EXPECT_THAT(why_never_best(labels, {"token", Direction::min}),
                AllOf(HasSubstr("no sample of the validation data has a weight for token"),
                      HasSubstr("--patience does not count them")));
    EXPECT_FALSE(is_better(labels, std::nullopt, {"token", Direction::min}));
    EXPECT_EQ(why_never_best(labels, {}), "");
    EXPECT_TRUE(is_better(labels, evaluation(2, 0.1), {}));  // 2, where that had 3
}

// On the others the last bit of the sum may be another.
TEST(BestByTest, Rank0DecidesForAll) {
    const HostComm world = test::world();
    const double other = world.rank() == 0 ? 1 : 3;
    EXPECT_TRUE(is_better(world, evaluation(other, 0), evaluation(2, 0), {}));
    EXPECT_FALSE(is_better(world, evaluation(2, 0), evaluation(other, 0), {}));
}

}  // namespace
}  // namespace hetseq::test
