#include "hetseq/util/process/signal_inbox.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <vector>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

struct KnownSignal {
    int number;
    const char* name;
};
constexpr std::array<KnownSignal, 5> known{
    {{SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGXCPU, "XCPU"}, {SIGTERM, "TERM"}, {SIGINT, "INT"}}};

constexpr int highest = 64;  // Linux's last signal

enum class Use { undecided, stop, checkpoint };

// The data that handlers touch: lock-free, without destructors.
std::array<std::atomic<Use>, highest + 1> uses{};
std::array<std::atomic<int>, highest + 1> arrived{};
std::atomic<int> first_stop{0};
std::atomic<std::int64_t> first_stop_time{0};                         // [s], monotonic clock
std::atomic<std::int64_t> one_request{signal_inbox::repeat_seconds};  // signals so near [s]
std::atomic<int> checkpoints{0};
static_assert(std::atomic<Use>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now_seconds() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

template <std::size_t n>
void tell(const char (&text)[n]) noexcept {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, n - 1);
}

[[noreturn]] void leave(int signal) noexcept {
    tell("hetseq: asked again to stop, leaves at once\n");
    ::_exit(128 + signal);
}

// Only a person at a terminal sends SIGINT, once for each Ctrl-C.
bool is_from_keyboard(int signal) noexcept {
    return signal == SIGINT;
}

void ask_to_stop(int signal) noexcept {
    int none = 0;
    if (first_stop.compare_exchange_strong(none, signal)) {
        first_stop_time = now_seconds();
        if (is_from_keyboard(signal))
            tell(
                "\nhetseq: stops after the next update, and saves where there is a --save-dir; another "
                "Ctrl-C ends it at once\n");
    } else if (is_from_keyboard(signal) || now_seconds() - first_stop_time > one_request) {
        leave(signal);
    }
}

void act(int signal) noexcept {
    if (uses[static_cast<std::size_t>(signal)] == Use::stop)
        ask_to_stop(signal);
    else
        ++checkpoints;
}

extern "C" void receive(int signal) {
    const auto index = static_cast<std::size_t>(signal);
    if (uses[index] == Use::undecided) {
        if (++arrived[index] > 1 && is_from_keyboard(signal))
            leave(signal);
        return;
    }
    act(signal);
}

// This is so for a job in the background of a script: Ctrl-C at that script is not meant for the
// job.
bool is_ignored(int signal) noexcept {
    struct sigaction action {};
    return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void handle(int signal, void (*handler)(int)) noexcept {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
}

}  // namespace

void signal_inbox::open() {
    for (const KnownSignal& signal : known) {
        uses[static_cast<std::size_t>(signal.number)] = Use::undecided;
        arrived[static_cast<std::size_t>(signal.number)] = 0;
    }
    first_stop = 0;
    checkpoints = 0;
    for (const KnownSignal& signal : known)
        if (signal.number != SIGINT || !is_ignored(SIGINT))
            handle(signal.number, receive);
    handle(SIGPIPE, SIG_IGN);
    handle(SIGXFSZ, SIG_IGN);
}

void signal_inbox::choose(const std::set<int>& stop,
                          const std::set<int>& checkpoint,
                          std::int64_t repeat_s) {
    one_request = repeat_s;
    for (const KnownSignal& signal : known) {
        const auto index = static_cast<std::size_t>(signal.number);
        const bool used = stop.count(signal.number) + checkpoint.count(signal.number) > 0;
        if (used)
            uses[index] = stop.count(signal.number) > 0 ? Use::stop : Use::checkpoint;
        else if (!is_ignored(signal.number))
            handle(signal.number, SIG_DFL);
        for (int times = arrived[index].exchange(0); times > 0; --times)
            used ? act(signal.number) : static_cast<void>(::raise(signal.number));
    }
}

void signal_inbox::release() {
    choose({}, {});
}

int signal_inbox::stop_signal() noexcept {
    return first_stop;
}

int signal_inbox::checkpoint_requests() noexcept {
    return checkpoints;
}

std::string signal_name(int signal) {
    for (const KnownSignal& each : known)
        if (each.number == signal)
            return std::string("SIG") + each.name;
    return "signal " + std::to_string(signal);
}

std::set<int> parse_signals(const std::string& list) {
    std::set<int> signals;
    if (list == "none")
        return signals;
    for (std::string name : split(list, ',')) {
        if (name.rfind("SIG", 0) == 0)
            name.erase(0, 3);
        const auto found = std::find_if(
            known.begin(), known.end(), [&](const KnownSignal& each) { return name == each.name; });
        if (found == known.end())
            throw BadConfig("'" + name + "' is not a signal that can be chosen",
                            "",
                            "use some of USR1, USR2, XCPU, TERM, INT with commas between, or none");
        signals.insert(found->number);
    }
    return signals;
}

}  // namespace hetseq
