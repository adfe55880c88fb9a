#include "hetseq/util/process/process_stat.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

// A child that ends at once.
pid_t start_child() {
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(0);
    return child;
}

TEST(ProcessStatTest, KnowsAProcessThatRuns) {
    const auto own = process_stat(::getpid());

    ASSERT_TRUE(own);
    EXPECT_EQ(own->state, 'R');
    EXPECT_GT(own->start, 0);
    EXPECT_FALSE(own->has_ended());
}

TEST(ProcessStatTest, AZombieHasEndedAndAfterwardsThereIsNone) {
    const pid_t child = start_child();
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);

    const auto zombie = process_stat(child);
    ASSERT_TRUE(zombie);
    EXPECT_TRUE(zombie->has_ended());

    ::waitpid(child, nullptr, 0);
    EXPECT_FALSE(process_stat(child));
}

// It may end between two system calls of a reader.
TEST(ProcessStatTest, AProcessMayEndWhileItIsLookedAt) {
    ::signal(SIGCHLD, SIG_IGN);  // children leave no zombie
    for (int i = 0; i < 200; ++i) {
        const pid_t child = start_child();
        while (process_stat(child)) {
        }
    }
    ::signal(SIGCHLD, SIG_DFL);
}

}  // namespace
}  // namespace hetseq
