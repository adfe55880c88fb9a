#include "hetseq/util/process/process_line.hpp"

#include <array>

#include <gtest/gtest.h>

#include "hetseq/util/process/activity.hpp"

#include "hetseq/version.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::StartsWith;

std::string program() {
    return std::string("hetseq ") + version::number + " (" + version::revision + "), ";
}

TEST(ProcessLineTest, NamesProgramRankHostPhaseAndUpdate) {
    set_process_identity(1, 4, "node07");
    activity::enter(Phase::computing, 12);

    EXPECT_EQ(process_line(), program() + "rank 1 of 4 on node07, computing, update 12");
    EXPECT_EQ(job_line(), program() + "4 ranks, computing, update 12");
}

TEST(ProcessLineTest, BeforeTheFirstUpdateNoneIsNamed) {
    set_process_identity(0, 1, "laptop");
    activity::enter(Phase::starting, 0);

    EXPECT_EQ(process_line(), program() + "rank 0 of 1 on laptop, starting");
    EXPECT_EQ(job_line(), program() + "starting");
}

TEST(ProcessLineTest, IsCutToAShortBuffer) {
    std::array<char, 10> buffer{};

    EXPECT_EQ(write_process_line(std::span{buffer}.first(9)), 9U);

    EXPECT_THAT(program(), StartsWith(buffer.data()));
}

TEST(ProcessLineTest, LongHostNamesAreCut) {
    set_process_identity(0, 2, std::string(1000, 'h'));

    EXPECT_THAT(process_line(), testing::HasSubstr(std::string(255, 'h') + ", "));
}

}  // namespace
}  // namespace hetseq
