#include "hetseq/train/record/speed_watch.hpp"

#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/record/recorder.hpp"
#include "hetseq/train/record/run_history.hpp"
#include "hetseq/train/shares/share_plan.hpp"

#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SpeedWatchTest : public testing::Test {
protected:
    SpeedWatch watch(RunHistory* history) {
        SpeedWatchOptions options;
        options.ranks = {{"rank 0 on h1", "h1 GPU-7", "V100", true},
                         {"rank 1 on h2", "h2 cpu 0", "EPYC", false}};
        options.limits = {.kinds = {0, 0}, .period_ms = 1, .least_updates = 1, .periods = 1};
        return {shares_, recorder_, history, options};
    }

    // What the log says of an update in which the ranks computed for so long.
    std::string observe(SpeedWatch& watch, double first_ms, double second_ms) {
        testing::internal::CaptureStderr();
        watch.observe(8, std::vector{first_ms, second_ms}, std::vector<std::int64_t>{4, 4});
        return testing::internal::GetCapturedStderr();
    }

    const test::TemporaryFolder folder_;
    const std::filesystem::path file_ = folder_ / "starts.json";
    SharePlan shares_{HostComm::serial(), "equal", std::vector<std::int64_t>{4, 4}};
    Recorder recorder_{nullptr, 0, {}};
};

TEST_F(SpeedWatchTest, TellsWhoIsSlowWhatItCostsAndWhereToLook) {
    SpeedWatch own = watch(nullptr);

    const std::string log = observe(own, 5, 20);

    EXPECT_THAT(
        log,
        HasSubstr(
            "rank 1 on h2 computes at 25 % of the speed of like devices (EPYC): forward and "
            "backward of an update take 20 ms, 5 ms if it were as fast as they, 10 ms without "
            "it"));
    EXPECT_THAT(log, HasSubstr("a host that swaps"));
    EXPECT_THAT(log, Not(HasSubstr("--drop-below")));  // there is no run that could be continued
    EXPECT_THAT(observe(own, 5, 5), HasSubstr("rank 1 on h2 is as fast as like devices again"));
    EXPECT_THAT(observe(own, 20, 5), HasSubstr("nvidia-smi"));
    ASSERT_EQ(own.slow().size(), 1U);
    EXPECT_EQ(own.slow().front().rank, 0U);
}

TEST_F(SpeedWatchTest, TheNextStartKnowsThem) {
    RunHistory history(file_, 0, 2, 0);
    SpeedWatch own = watch(&history);

    EXPECT_THAT(observe(own, 5, 20), HasSubstr("; --drop-below 0.3 leaves it out"));

    const RunStart found = read_run_history(file_).back();
    ASSERT_EQ(found.slow.size(), 1U);
    EXPECT_EQ(found.slow[0].device, "h2 cpu 0");
    EXPECT_DOUBLE_EQ(found.slow[0].speed, 0.25);
    observe(own, 5, 5);
    EXPECT_THAT(read_run_history(file_).back().slow, IsEmpty());
}

TEST_F(SpeedWatchTest, WhatIsKnownOfASlowDeviceFollowsIt) {
    RunHistory history(file_, 0, 2, 0);
    SpeedWatch own = watch(&history);
    observe(own, 5, 20);

    EXPECT_EQ(observe(own, 5, 50), "");

    ASSERT_EQ(read_run_history(file_).back().slow.size(), 1U);
    EXPECT_DOUBLE_EQ(read_run_history(file_).back().slow[0].speed, 0.1);
}

TEST_F(SpeedWatchTest, ADeviceThatAnEarlierStartFoundSlowMayBeWell) {
    {
        RunHistory earlier(file_, 0, 2, 0);
        SpeedWatch its = watch(&earlier);
        observe(its, 5, 20);
    }
    RunHistory history(file_, 0, 2, 0);
    SpeedWatch own = watch(&history);
    EXPECT_TRUE(history.is_slow("h2 cpu 0"));

    EXPECT_THAT(observe(own, 5, 5), HasSubstr("rank 1 on h2 is as fast as like devices again"));

    EXPECT_THAT(read_run_history(file_).back().slow, IsEmpty());
    EXPECT_EQ(observe(own, 5, 5), "");
}

TEST_F(SpeedWatchTest, WithoutRanksToWatchNothingIsTold) {
    SpeedWatch none(shares_, recorder_, nullptr, {});
    EXPECT_EQ(observe(none, 1, 100), "");
    EXPECT_THAT(none.slow(), IsEmpty());
}

}  // namespace
}  // namespace hetseq
