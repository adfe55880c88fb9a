#include "hetseq/comm/meeting_limit.hpp"

#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

class MeetingLimitTest : public testing::Test {
protected:
    void SetUp() override { setenv("OMPI_COMM_WORLD_SIZE", "3", 1); }
    void TearDown() override {
        unsetenv("OMPI_COMM_WORLD_SIZE");
        unsetenv("HETSEQ_MEETING_TIMEOUT");
    }

    MeetingLimit::Options options(double seconds) {
        return {.seconds = seconds,
                .end = [this](const std::string& message) { said_.set_value(message); }};
    }

    std::promise<std::string> said_;
};

TEST_F(MeetingLimitTest, SaysWhoWaitedWhereAndForWhom) {
    auto said = said_.get_future();
    const MeetingLimit limit{"in MPI_Init", [] { return "rank 2 has not come"; }, options(0.05)};

    ASSERT_EQ(said.wait_for(20s), std::future_status::ready);
    EXPECT_THAT(said.get(),
                AllOf(HasSubstr("rank 0 on "),
                      HasSubstr(" has waited "),
                      HasSubstr(" s in MPI_Init for the other ranks (rank 2 has not come"),
                      HasSubstr("HETSEQ_MEETING_TIMEOUT")));
}

TEST_F(MeetingLimitTest, SaysNothingOnceAllHaveMet) {
    auto said = said_.get_future();
    {
        MeetingLimit limit{"in MPI_Init", {}, options(0.05)};
        limit.met();
        std::this_thread::sleep_for(200ms);
        const MeetingLimit other{"in MPI_Init", {}, options(30)};
    }
    EXPECT_EQ(said.wait_for(0s), std::future_status::timeout);
}

TEST_F(MeetingLimitTest, TheEnvironmentGivesTheLimit) {
    EXPECT_EQ(MeetingLimit::seconds_of_environment(), 120);
    setenv("HETSEQ_MEETING_TIMEOUT", "7.5", 1);
    EXPECT_EQ(MeetingLimit::seconds_of_environment(), 7.5);
    for (const char* wrong : {"", "two", "-1", "3 s", "nan"}) {
        setenv("HETSEQ_MEETING_TIMEOUT", wrong, 1);
        EXPECT_THROW(MeetingLimit::seconds_of_environment(), BadConfig) << wrong;
    }
}

}  // namespace
}  // namespace hetseq
