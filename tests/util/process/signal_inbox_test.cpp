#include "hetseq/util/process/signal_inbox.hpp"

#include <csignal>
#include <cstdlib>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

namespace hetseq {
namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;

// Each in a process of its own, since handlers are the process's.
class SignalInboxTest : public testing::Test {
protected:
    SignalInboxTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

    [[noreturn]] static void leave_if(bool condition) { std::_Exit(condition ? 0 : 1); }
};

TEST_F(SignalInboxTest, KeepsASignalThatCameBeforeItsUseWasKnown) {
    const auto work = [] {
        signal_inbox::open();
        ::raise(SIGUSR1);
        signal_inbox::choose({SIGUSR1}, {SIGUSR2});
        leave_if(signal_inbox::stop_signal() == SIGUSR1);
    };
    EXPECT_EXIT(work(), ExitedWithCode(0), "");
}

TEST_F(SignalInboxTest, TellsStopsFromCheckpoints) {
    const auto work = [] {
        signal_inbox::open();
        signal_inbox::choose({SIGTERM}, {SIGUSR2});
        ::raise(SIGUSR2);
        ::raise(SIGUSR2);
        leave_if(signal_inbox::stop_signal() == 0 && signal_inbox::checkpoint_requests() == 2);
    };
    EXPECT_EXIT(work(), ExitedWithCode(0), "");
}

TEST_F(SignalInboxTest, ARepeatSoonAfterIsTheSameRequest) {
    const auto work = [] {
        signal_inbox::open();
        signal_inbox::choose({SIGUSR1, SIGTERM}, {});
        ::raise(SIGUSR1);
        ::raise(SIGUSR1);
        ::raise(SIGTERM);
        leave_if(signal_inbox::stop_signal() == SIGUSR1);
    };
    EXPECT_EXIT(work(), ExitedWithCode(0), "");
}

TEST_F(SignalInboxTest, ARepeatLaterLeavesAtOnce) {
    const auto work = [] {
        signal_inbox::open();
        signal_inbox::choose({SIGUSR1}, {}, 0);
        ::raise(SIGUSR1);
        ::sleep(2);  // it counts whole seconds
        ::raise(SIGUSR1);
        std::_Exit(1);
    };
    EXPECT_EXIT(work(), ExitedWithCode(128 + SIGUSR1), "leaves at once");
}

TEST_F(SignalInboxTest, CtrlCAsksToStopAndASecondOneLeavesAtOnce) {
    const auto once = [] {
        ::signal(SIGINT, SIG_DFL);
        signal_inbox::open();
        signal_inbox::choose({SIGINT, SIGTERM}, {});
        ::raise(SIGINT);
        leave_if(signal_inbox::stop_signal() == SIGINT);
    };
    const auto twice = [] {
        ::signal(SIGINT, SIG_DFL);
        signal_inbox::open();
        signal_inbox::choose({SIGINT, SIGTERM}, {});
        ::raise(SIGINT);
        ::raise(SIGINT);
        std::_Exit(1);
    };
    const auto before_its_use_was_known = [] {
        ::signal(SIGINT, SIG_DFL);
        signal_inbox::open();
        ::raise(SIGINT);
        ::raise(SIGINT);
        std::_Exit(1);
    };
    EXPECT_EXIT(once(), ExitedWithCode(0), "another Ctrl-C ends it at once");
    EXPECT_EXIT(twice(), ExitedWithCode(128 + SIGINT), "leaves at once");
    EXPECT_EXIT(before_its_use_was_known(), ExitedWithCode(128 + SIGINT), "leaves at once");
}

// A shell starts jobs in the background of a script so.
TEST_F(SignalInboxTest, CtrlCThatWasIgnoredStaysIgnored) {
    const auto work = [] {
        ::signal(SIGINT, SIG_IGN);
        signal_inbox::open();
        signal_inbox::choose({SIGINT}, {});
        ::raise(SIGINT);
        signal_inbox::release();
        ::raise(SIGINT);
        leave_if(signal_inbox::stop_signal() == 0);
    };
    EXPECT_EXIT(work(), ExitedWithCode(0), "");
}

TEST_F(SignalInboxTest, ASignalWithoutUseHasItsDefaultEffect) {
    const auto not_chosen = [] {
        signal_inbox::open();
        ::raise(SIGUSR2);
        signal_inbox::choose({SIGUSR1}, {});
        std::_Exit(0);
    };
    const auto released = [] {
        signal_inbox::open();
        signal_inbox::release();
        ::raise(SIGTERM);
        std::_Exit(0);
    };
    EXPECT_EXIT(not_chosen(), KilledBySignal(SIGUSR2), "");
    EXPECT_EXIT(released(), KilledBySignal(SIGTERM), "");
}

TEST(SignalNamesTest, AreReadWithAndWithoutSig) {
    EXPECT_EQ(parse_signals("USR1,SIGTERM,INT"), (std::set<int>{SIGUSR1, SIGTERM, SIGINT}));
    EXPECT_TRUE(parse_signals("none").empty());
    EXPECT_TRUE(parse_signals("").empty());
    EXPECT_THROW(parse_signals("USR1,KILL"), BadConfig);
    EXPECT_EQ(signal_name(SIGXCPU), "SIGXCPU");
}

}  // namespace
}  // namespace hetseq
