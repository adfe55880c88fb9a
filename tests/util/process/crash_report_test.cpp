#include "hetseq/util/process/crash_report.hpp"

#include <csignal>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/process_line.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::AllOf;
using testing::ExitedWithCode;
using testing::HasSubstr;
using testing::KilledBySignal;

void write_to(volatile int* place) {
    *place = 1;
}

void touch_foreign_memory() {
    const volatile std::uintptr_t place = 16;
    write_to(reinterpret_cast<volatile int*>(place));
}

// Touches the part of a mapping that a truncated file has lost.
void touch_a_vanished_file() {
    std::FILE* file = std::tmpfile();
    void* place = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ::fileno(file), 0);
    write_to(static_cast<volatile int*>(place));
}

[[gnu::noinline]] int recurse(int depth) {
    volatile char frame[4096];
    frame[0] = static_cast<char>(depth);
    return depth < 0 ? 0 : recurse(depth + 1) + frame[0];
}

class CrashReportDeathTest : public testing::Test {
protected:
    void SetUp() override {
        set_process_identity(2, 4, "node07");
        activity::enter(Phase::computing, 12);
    }

    // The report of a process that runs `crash`.
    template <class Crash>
    static void dies(int signal, Crash&& crash) {
        EXPECT_EXIT(
            {
                install_crash_report();
                crash();
            },
            KilledBySignal(signal),
            AllOf(HasSubstr("error: the program was ended by SIG"),
                  HasSubstr(", rank 2 of 4 on node07, computing, update 12\n"),
                  HasSubstr("continues from the newest checkpoint")));
    }
};

TEST_F(CrashReportDeathTest, ForeignMemory) {
    dies(SIGSEGV, touch_foreign_memory);
}

TEST_F(CrashReportDeathTest, MemoryThatWentAway) {
    dies(SIGBUS, touch_a_vanished_file);
}

TEST_F(CrashReportDeathTest, AStackThatOverflows) {
    dies(SIGSEGV, [] { std::_Exit(recurse(0)); });
}

TEST_F(CrashReportDeathTest, AbortArithmeticAndInstructions) {
    dies(SIGABRT, [] { std::abort(); });
    dies(SIGFPE, [] { std::raise(SIGFPE); });
    dies(SIGILL, [] { std::raise(SIGILL); });
}

TEST_F(CrashReportDeathTest, AnExceptionNobodyCatchesSaysWhatItWas) {
    EXPECT_EXIT(
        {
            install_crash_report();
            std::thread([] { throw std::runtime_error("the disk melted"); }).join();
        },
        KilledBySignal(SIGABRT),
        AllOf(HasSubstr("the disk melted"), HasSubstr("rank 2 of 4 on node07")));
}

TEST_F(CrashReportDeathTest, AnotherThread) {
    dies(SIGSEGV, [] { std::thread(touch_foreign_memory).join(); });
}

TEST_F(CrashReportDeathTest, TwoThreadsAtOnceReportOnce) {
    EXPECT_EXIT(
        {
            install_crash_report();
            std::thread first(touch_foreign_memory);
            std::thread second(touch_foreign_memory);
            first.join();
            second.join();
        },
        KilledBySignal(SIGSEGV),
        testing::ResultOf(
            [](const std::string& text) {
                const std::string block = "error: the program";
                return text.find(block) != std::string::npos &&
                       text.find(block) == text.rfind(block);
            },
            true));
}

TEST_F(CrashReportDeathTest, AnOrderlyEndSaysNothing) {
    EXPECT_EXIT(
        {
            install_crash_report();
            std::exit(0);
        },
        ExitedWithCode(0),
        testing::IsEmpty());
}

}  // namespace
}  // namespace hetseq
