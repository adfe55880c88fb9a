#include "hetseq/session/ranks/slow_devices.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/record/run_history.hpp"

#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

class SlowDevicesTest : public testing::Test {
protected:
    // Three ranks on two hosts.
    RunSettings settings(const std::string& drop_below) {
        OptionValues values;
        for (const auto& option : option_table())
            values[option.name] = option.default_value;
        values["drop-below"] = drop_below;
        RunSettings settings{SettledOptions(values)};
        for (int rank = 0; rank < 3; ++rank)
            settings.topology.ranks.push_back(
                {.rank = rank,
                 .host = rank < 2 ? "h1" : "h2",
                 .mark = (rank < 2 ? "h1 cpu " : "h2 cpu ") + std::to_string(rank % 2)});
        return settings;
    }

    void start_that_found(const std::string& device, double speed, double seconds_ago) {
        RunHistory::Clock clock;
        clock.since_1970 = [=] { return now() - seconds_ago; };
        RunHistory(
            file_, 0, 3, 0, [] { return true; }, clock)
            .slow(device, speed);
    }

    std::vector<int> kept(const std::string& drop_below) { return kept(settings(drop_below)); }
    std::vector<int> kept(const RunSettings& settings) {
        testing::internal::CaptureStderr();
        const std::vector<int> ranks = ranks_not_dropped(HostComm::serial(), settings, file_);
        log_ = testing::internal::GetCapturedStderr();
        return ranks;
    }

    const test::TemporaryFolder folder_;
    const std::filesystem::path file_ = folder_ / "starts.json";
    std::string log_;
};

TEST_F(SlowDevicesTest, AreLeftOutBelowTheLimit) {
    start_that_found("h1 cpu 1", 0.4, 60);

    EXPECT_THAT(kept("0.5"), ElementsAre(0, 2));
    EXPECT_THAT(log_, HasSubstr("left out: rank 1 on h1 (40 %): their speed beside"));
    EXPECT_THAT(kept("0.4"), ElementsAre(0, 1, 2));
    EXPECT_THAT(kept("0"), ElementsAre(0, 1, 2));
    EXPECT_EQ(log_, "");
}

TEST_F(SlowDevicesTest, AreTriedAgainAfterADay) {
    start_that_found("h1 cpu 1", 0.4, 90'000);
    EXPECT_THAT(kept("0.5"), ElementsAre(0, 1, 2));
}

// The start that leaves a device out hands on what it knows.
TEST_F(SlowDevicesTest, StayKnownOverStartsWithoutThem) {
    start_that_found("h1 cpu 1", 0.4, 80'000);
    start_that_found("h2 cpu 0", 0.3, 60);
    EXPECT_THAT(kept("0.5"), ElementsAre(0));
    RunHistory(file_, 0, 1, 0).recovered("h2 cpu 0");
    EXPECT_THAT(kept("0.5"), ElementsAre(0, 2));
}

TEST_F(SlowDevicesTest, OneRankAtLeastWorks) {
    for (const char* device : {"h1 cpu 0", "h1 cpu 1", "h2 cpu 0"})
        start_that_found(device, 0.4, 60);
    EXPECT_THAT(kept("0.5"), ElementsAre(0, 1, 2));
    EXPECT_THAT(log_, HasSubstr("leaves nobody out: no rank would be left"));
}

TEST_F(SlowDevicesTest, AllWorkWhereTheOthersMayNotOrAreGivenByNumber) {
    start_that_found("h1 cpu 1", 0.4, 60);
    RunSettings capacities = settings("0.5");
    capacities.capacities = {0, 8, 0};
    EXPECT_THAT(kept(capacities), ElementsAre(0, 1, 2));
    EXPECT_THAT(log_, HasSubstr("the others have a capacity of 0"));
    RunSettings workers = settings("0.5");
    workers.settle(workers.options().virtual_workers, "0+1,2");
    EXPECT_THAT(kept(workers), ElementsAre(0, 1, 2));
    EXPECT_THAT(log_, HasSubstr("--virtual-workers names the ranks"));
    RunSettings shares = settings("0.5");
    shares.settle(shares.options().virtual_workers, "auto");
    EXPECT_THAT(kept(shares), ElementsAre(0, 2));
}

TEST_F(SlowDevicesTest, AClockThatWasSetBackKeepsNobodyOutForLong) {
    start_that_found("h1 cpu 1", 0.4, -900'000);
    EXPECT_THAT(kept("0.5"), ElementsAre(0, 1, 2));
}

TEST_F(SlowDevicesTest, NothingIsKnownWithoutAHistory) {
    EXPECT_THAT(kept("0.5"), ElementsAre(0, 1, 2));
    folder_.write("starts.json", "{");
    EXPECT_THAT(kept("0.5"), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace hetseq
