#include "hetseq/util/process/status_line.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/log.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::MatchesRegex;

TEST(StatusLineTest, AMessageTakesItsPlace) {
    testing::internal::CaptureStderr();

    status_line::show("half");
    log::info("message");
    log::info("another");
    status_line::show("whole");
    status_line::erase();
    status_line::erase();

    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                MatchesRegex("\r\033\\[Khalf\r\033\\[K[^\r]* message\n[^\r]* another\n"
                             "\r\033\\[Kwhole\r\033\\[K"));
}

}  // namespace
}  // namespace hetseq
