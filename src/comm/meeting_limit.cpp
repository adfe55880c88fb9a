#include "hetseq/comm/meeting_limit.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include <unistd.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/launcher.hpp"
#include "hetseq/util/process/process_line.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

#include <pthread.h>

namespace hetseq {

namespace {

constexpr const char* variable = "HETSEQ_MEETING_TIMEOUT";
constexpr double usual_limit_s = 120;
constexpr std::chrono::milliseconds time_to_print{200};
constexpr unsigned patience_with_launcher_s = 20;  // it may be busy with a slow start

// Rank 0 knows most, and its end ends the others. Then the lowest rank.
double grace_s(int rank) {
    return rank == 0 ? 0 : 1 + 0.25 * std::min(rank - 1, 8);
}

std::string stopped_text() {
    std::string text;
    for (const StoppedRank& one : stopped_ranks_here())
        text += (text.empty() ? "" : ", ") + std::string("rank ") + std::to_string(one.rank) +
                ", process " + std::to_string(one.process) + " of this host, is stopped";
    return text;
}

std::string message_text(double waited, const std::string& where, const std::string& missing) {
    const std::string stopped = stopped_text();
    const std::string known =
        missing.empty() || stopped.empty() ? missing + stopped : missing + "; " + stopped;
    return Explanation{
        "rank " + std::to_string(MpiEnvironment::launched_rank()) + " on " + host_name() +
            " has waited " + format_number(waited, 3) + " s " + where + " for the other ranks",
        known.empty() ? "here it is not known which of them has not come" : known,
        std::string("look whether all processes of the job run, and at the network between its "
                    "hosts; where the start takes longer, set ") +
            variable + " [s]"}
        .text();
}

}  // namespace

struct MeetingLimit::Watch {
    Watch(std::string where, std::function<std::string()> missing, const Options& options)
        : where_{std::move(where)},
          missing_{std::move(missing)},
          options_{options},
          thread_{[this] { run(); }} {}

    ~Watch() {
        {
            const std::lock_guard lock{mutex_};
            has_met_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

private:
    void run() {
        pthread_setname_np(pthread_self(), "hetseq-meeting");
        const double limit = options_.seconds + grace_s(MpiEnvironment::launched_rank());
        const double period = std::min(1.0, options_.seconds / 5);
        double waited = 0;
        double woken = monotonic_seconds();
        std::unique_lock lock{mutex_};
        while (waited < limit) {
            if (changed_.wait_for(
                    lock, std::chrono::duration<double>(period), [&] { return has_met_; }))
                return;
            const double now = monotonic_seconds();
            waited += std::min(now - std::exchange(woken, now), 2 * period);
        }
        lock.unlock();
        options_.end(message_text(waited, where_, missing_ ? missing_() : ""));
    }

    std::string where_;
    std::function<std::string()> missing_;
    Options options_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool has_met_ = false;
    std::thread thread_;  // last: ends before what it uses
};

MeetingLimit::MeetingLimit(std::string where, std::function<std::string()> missing)
    : MeetingLimit{std::move(where), std::move(missing), Options{}} {}

MeetingLimit::MeetingLimit(std::string where,
                           std::function<std::string()> missing,
                           const Options& options) {
    if (options.seconds > 0 && MpiEnvironment::launched_as_rank())
        watch_ = std::make_unique<Watch>(std::move(where), std::move(missing), options);
}

MeetingLimit::~MeetingLimit() = default;

void MeetingLimit::met() noexcept {
    watch_.reset();
}

double MeetingLimit::seconds_of_environment() {
    const char* text = std::getenv(variable);
    if (text == nullptr)
        return usual_limit_s;
    char* end = nullptr;
    const double seconds = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0))
        throw BadConfig(std::string(variable) + " is '" + text + "'",
                        "",
                        "set it to seconds, or to 0 for no limit");
    return seconds;
}

void MeetingLimit::end_process(const std::string& message) {
    log::here(log::Level::error, message + "\n  " + process_line());
    end_launcher_if_stuck(patience_with_launcher_s);
    std::this_thread::sleep_for(time_to_print);
    // Another thread may be inside MPI, so that MPI cannot be asked to end the job.
    ::_exit(static_cast<int>(ExitCode::device));
}

}  // namespace hetseq
