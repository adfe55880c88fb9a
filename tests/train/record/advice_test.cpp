#include "hetseq/train/record/advice.hpp"

#include <gtest/gtest.h>

#include "hetseq/train/record/summary.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two hosts of one rank; updates of 100 ms.
Summary two_hosts(double first_wait_ms, double second_wait_ms) {
    Summary summary;
    summary.policy = "auto";
    summary.step_ms = {100, 100, 100};
    summary.ranks = {
        {.rank = 0, .host = "h1", .units = 500, .ms = {{RankTime::wait, first_wait_ms}}},
        {.rank = 1, .host = "h2", .units = 500, .ms = {{RankTime::wait, second_wait_ms}}}};
    return summary;
}

TEST(AdviceTest, NoneForARunThatKeepsEverybodyBusy) {
    EXPECT_THAT(advice(two_hosts(3, 4)), IsEmpty());
}

TEST(AdviceTest, AHostThatIdlesUnderAnEqualCutCouldBeBalanced) {
    Summary summary = two_hosts(70, 2);
    summary.policy = "equal";

    EXPECT_THAT(
        advice(summary),
        ElementsAre(AllOf(HasSubstr("h1 idles 68 % of each update"), HasSubstr("--balance auto"))));
}

TEST(AdviceTest, WaitingOfAllIsCommunication) {
    EXPECT_THAT(advice(two_hosts(31, 30)),
                ElementsAre(AllOf(HasSubstr("communication takes 30 % of each update"),
                                  HasSubstr("links, not devices, are the limit"))));
}

// A rank that waits longer than the others waits for one that computes, whatever its link is like.
TEST(AdviceTest, WaitingForASlowHostIsNotTheLinks) {
    Summary summary = two_hosts(45, 12);
    summary.ranks[0].unit_ms = 4;

    EXPECT_THAT(advice(summary),
                ElementsAre(AllOf(HasSubstr("h1 idles 33 % of each update"),
                                  HasSubstr("waiting for h2 to compute: speeds are not those"))));
}

TEST(AdviceTest, AHostThatCouldTakeMoreSaysWhetherASampleFits) {
    Summary summary = two_hosts(30, 2);
    summary.ranks[0].unit_ms = 40;

    EXPECT_THAT(advice(summary), ElementsAre(HasSubstr("one more sample would take longer")));
}

TEST(AdviceTest, ManyHostsShareALine) {
    Summary summary = two_hosts(0, 40);
    for (const char* host : {"h3", "h4", "h5", "h6"})
        summary.ranks.push_back(
            {.rank = 2, .host = host, .units = 500, .ms = {{RankTime::wait, 30}}});

    EXPECT_THAT(advice(summary), ElementsAre(HasSubstr("h2, h3, h4 and 2 more idle up to 40 %")));
}

TEST(AdviceTest, AHostWithoutWorkIsNamedWhereSpeedsDecide) {
    Summary summary = two_hosts(3, 90);
    summary.ranks[1].units = 0;
    EXPECT_THAT(advice(summary), ElementsAre(HasSubstr("h2 had no work")));

    summary.policy = "declared";
    EXPECT_THAT(advice(summary), IsEmpty());
}

TEST(AdviceTest, WaitingForDataIsNamed) {
    Summary summary = two_hosts(3, 4);
    summary.ranks[1].ms[RankTime::data] = 12;

    EXPECT_THAT(advice(summary),
                ElementsAre(HasSubstr("rank 1 waits 12 % of each update for data")));
}

TEST(AdviceTest, ASingleRankNeedsNone) {
    Summary summary = two_hosts(50, 50);
    summary.ranks.pop_back();

    EXPECT_THAT(advice(summary), IsEmpty());
}

}  // namespace
}  // namespace hetseq
