#include "hetseq/util/process/crash_report.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/process_line.hpp"

#include "signal_safe_text.hpp"

namespace hetseq {

namespace {

struct CrashSignal {
    int number;
    const char* meaning;
};

constexpr std::array<CrashSignal, 5> crash_signals{{
    {SIGSEGV, "SIGSEGV: it touched memory that is not its own, or its stack overflowed"},
    {SIGBUS, "SIGBUS: memory went away, as a full /dev/shm or a truncated file makes it"},
    {SIGFPE, "SIGFPE: an integer was divided by zero"},
    {SIGILL, "SIGILL: an instruction that this processor lacks"},
    {SIGABRT, "SIGABRT: it gave up, see the lines above"},
}};

constexpr const char* what_to_do =
    "  the whole job ends; the same command continues from the newest checkpoint.\n"
    "  If it comes back at the same place, report these lines, the command line and the core file\n"
    "  (ulimit -c unlimited)\n";

constexpr std::size_t stack_bytes = std::size_t{64} << 10;
alignas(16) std::array<char, stack_bytes> report_stack;

enum class Report { none, being_written, written };
constinit std::atomic<Report> report_state{Report::none};
static_assert(std::atomic<Report>::is_always_lock_free);

const char* meaning_of(int number) noexcept {
    for (const CrashSignal& signal : crash_signals)
        if (signal.number == number)
            return signal.meaning;
    return "a signal";
}

void write_report(int number) noexcept {
    std::array<char, 1536> buffer;
    SignalSafeText text{buffer};
    text.append("error: the program was ended by ").append(meaning_of(number)).append("\n  ");
    std::array<char, 512> line{};
    write_process_line(std::span{line}.first(line.size() - 1));
    text.append(line.data()).append("\n").append(what_to_do);
    // A single write, so that the blocks of several ranks do not mix. Nothing can be done if it
    // fails.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, buffer.data(), text.size());
}

// A second thread that crashes meanwhile reports nothing, and does not end the process before the
// first one has reported.
void wait_for_report() noexcept {
    constexpr timespec pause{0, 1'000'000};  // [ns]
    for (int i = 0; i < 1000 && report_state != Report::written; ++i)
        ::nanosleep(&pause, nullptr);
}

// The default action follows when this returns and the signal is no longer blocked.
void report(int number) {
    const int error = errno;
    Report none = Report::none;
    if (report_state.compare_exchange_strong(none, Report::being_written)) {
        write_report(number);
        report_state = Report::written;
    } else {
        wait_for_report();
    }
    std::signal(number, SIG_DFL);
    std::raise(number);
    errno = error;
}

void require(int result, const char* call) {
    if (result != 0)
        throw InternalError(std::string(call) + " failed", std::strerror(errno));
}

}  // namespace

void install_crash_report() {
    stack_t stack{};
    stack.ss_sp = report_stack.data();
    stack.ss_size = report_stack.size();
    require(::sigaltstack(&stack, nullptr), "sigaltstack");
    struct sigaction action {};
    action.sa_handler = report;
    action.sa_flags = SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (const CrashSignal& signal : crash_signals)
        require(::sigaction(signal.number, &action, nullptr), "sigaction");
}

}  // namespace hetseq
