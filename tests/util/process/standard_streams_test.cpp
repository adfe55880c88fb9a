#include "hetseq/util/process/standard_streams.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <fcntl.h>

namespace hetseq {
namespace {

using testing::ExitedWithCode;

// The exit code of a process that prints to `descriptor` as its standard output.
int print_to(int descriptor) {
    ::dup2(descriptor, STDOUT_FILENO);
    std::signal(SIGPIPE, SIG_IGN);  // as signal_inbox::open does
    keep_standard_streams();
    for (int i = 0; i < 10000; ++i)
        std::puts("a line of a long table");
    try {
        check_standard_output();
        return 0;
    } catch (const IoError&) {
        return 74;
    }
}

TEST(StandardStreamsDeathTest, AReaderThatLeavesEndsNothing) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ::close(ends[0]);
    EXPECT_EXIT(std::_Exit(print_to(ends[1])), ExitedWithCode(0), "");
    ::close(ends[1]);
}

TEST(StandardStreamsDeathTest, AFullDeviceIsAnError) {
    if (!std::filesystem::exists("/dev/full"))
        GTEST_SKIP() << "there is no /dev/full";
    const int full = ::open("/dev/full", O_WRONLY);
    EXPECT_EXIT(std::_Exit(print_to(full)), ExitedWithCode(74), "");
    ::close(full);
}

// Closed ones are taken by what is opened next, and printed into.
TEST(StandardStreamsDeathTest, NoFileTakesAClosedStreamsPlace) {
    EXPECT_EXIT(
        {
            ::close(STDIN_FILENO);
            ::close(STDOUT_FILENO);
            keep_standard_streams();
            const int file = ::open("/dev/null", O_RDONLY);
            std::puts("into nothing");
            check_standard_output();
            std::_Exit(file > STDERR_FILENO ? 0 : 1);
        },
        ExitedWithCode(0),
        "");
}

TEST(StandardStreamsDeathTest, OpenOnesStayAsTheyAre) {
    EXPECT_EXIT(
        {
            const int before = ::open("/dev/null", O_RDONLY);
            ::close(before);
            keep_standard_streams();
            const int after = ::open("/dev/null", O_RDONLY);
            std::fputs("still here", stderr);
            std::_Exit(before == after ? 0 : 1);
        },
        ExitedWithCode(0),
        "still here");
}

}  // namespace
}  // namespace hetseq
