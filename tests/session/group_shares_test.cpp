#include "hetseq/session/group_shares.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

// Two ranks, of which the second takes `times` as long for a sample.
SharePlan unlike_shares(double times, std::int64_t micro_batch = 64) {
    const StepCost fast{.unit_ms = 1, .micro_batch = 64};
    const StepCost slow{.unit_ms = times, .micro_batch = micro_batch};
    return {HostComm::serial(), "auto", std::vector<StepCost>{fast, slow}};
}

BatchPlan plan_of(std::int64_t samples, std::int64_t batch, std::int64_t group) {
    BatchPlan plan(samples, batch);
    plan.set_groups(group);
    return plan;
}

TEST(GroupSharesTest, TheReportSaysWhatWholeGroupsCost) {
    SharePlan shares = unlike_shares(4);  // 409.6 and 102.4 of 512

    // 416 and 96 samples: the first takes 416 ms in place of 410.
    EXPECT_EQ(group_report(shares, plan_of(5120, 512, 32)),
              "groups of 32 samples (--norm-group), by rank: 13, 3; whole groups cost 1.5 % of "
              "time\n");
    EXPECT_EQ(group_report(shares, BatchPlan(5120, 512)), "");
}

TEST(GroupSharesTest, SharesAreWhatRanksCompute) {
    SharePlan shares = unlike_shares(4);

    EXPECT_THAT(shares_of_full_batch(shares, BatchPlan(5120, 512)), testing::ElementsAre(410, 102));
    EXPECT_THAT(shares_of_full_batch(shares, plan_of(5120, 512, 32)),
                testing::ElementsAre(416, 96));
    EXPECT_THAT(shares_of_full_batch(shares, plan_of(40, 40, 32)), testing::ElementsAre(40, 0));
}

TEST(GroupSharesTest, TheReportNamesAGroupThatCostsLittle) {
    SharePlan shares = unlike_shares(4);

    // 7 and 1 groups of 64: 448 ms in place of 410. Groups of 60 come out as 7 and 1 of 64 as well.
    const std::string report = group_report(shares, plan_of(5120, 512, 64));

    EXPECT_THAT(report,
                testing::HasSubstr("by rank: 7, 1; whole groups cost 9.3 % of time, groups of "));
    EXPECT_THAT(report, testing::HasSubstr(" would cost "));
}

TEST(GroupSharesTest, ARankHoldsAGroupOrHasNoWork) {
    SharePlan enough = unlike_shares(1, 32), none = unlike_shares(1, 0), few = unlike_shares(1, 31);

    check_groups(enough, plan_of(5120, 512, 32), "training");
    check_groups(none, plan_of(5120, 512, 32), "training");
    check_groups(few, BatchPlan(5120, 512), "training");
    EXPECT_THROW(check_groups(few, plan_of(5120, 512, 32), "training"), BadConfig);
    // The last batch of an epoch has 40 samples, which are one group.
    EXPECT_THROW(check_groups(enough, plan_of(5120 + 40, 512, 32), "training"), BadConfig);
}

}  // namespace
}  // namespace hetseq
