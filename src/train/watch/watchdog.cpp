#include "hetseq/train/watch/watchdog.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process_line.hpp"
#include "hetseq/comm/heartbeats.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host/launcher.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

#include <pthread.h>

namespace hetseq {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds farewell{2000};
constexpr std::chrono::milliseconds time_to_print{200};

// A slow processor does not delay a wake-up by this much: the process was suspended.
constexpr double suspended_s = 1;

// If rank 0 is lost, all others miss it. The lowest rank reports first, and its end ends the
// others.
double grace_s(int rank) {
    return 1 + 0.25 * std::min(rank - 1, 8);
}

std::chrono::milliseconds beat_period(const WatchdogOptions& options) {
    const Seconds often_enough{options.stall_timeout / 5};
    return std::min(options.period,
                    std::chrono::duration_cast<std::chrono::milliseconds>(often_enough));
}

}  // namespace

void end_stalled_job(const Stall& stall) {
    log::here(log::Level::error, "the job stalls: " + stall.text + "\n  " + process_line());
    if (stall.is_lost)
        end_launcher_if_stuck();
    std::this_thread::sleep_for(time_to_print);
    MpiEnvironment::abort(static_cast<int>(ExitCode::device));
}

class Watchdog::Watch {
public:
    Watch(bool beats, const HostComm& world, const WatchdogOptions& options)
        : rank_{world.rank()},
          end_{options.end},
          period_{beat_period(options)},
          detector_{world.all_gather(host_name()), options.stall_timeout, monotonic_seconds()} {
        if (beats)
            heartbeats_.emplace(world);
        else
            for (int rank = 0; rank < world.size(); ++rank)
                if (rank != rank_)
                    detector_.left(rank);
        thread_ = std::thread([this] { run(); });
    }

    ~Watch() {
        {
            const std::lock_guard lock{mutex_};
            ending_ = true;
            in_order_ = std::uncaught_exceptions() == 0;
        }
        changed_.notify_all();
        thread_.join();
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

private:
    void run() {
        pthread_setname_np(pthread_self(), "hetseq-watch");
        try {
            double woken = monotonic_seconds();
            while (sleep()) {
                const double slept = monotonic_seconds() - woken;
                woken += slept;
                excuse(slept - Seconds(period_).count());
                if (const auto stall = look(woken)) {
                    end_(*stall);
                    return;
                }
            }
            if (heartbeats_ && in_order_)
                heartbeats_->finish(farewell);
        } catch (const std::exception& error) {
            end_({{rank_}, message_of(error)});
        }
    }

    // False once the watch is over.
    bool sleep() {
        std::unique_lock lock{mutex_};
        return !changed_.wait_for(lock, period_, [&] { return ending_; });
    }

    // A suspended process did not work in that time. This is not a stall, neither of this process
    // nor of others.
    void excuse(double late) {
        if (late < suspended_s)
            return;
        detector_.stood_still(late);
        const std::int64_t changes = activity::now().changes;
        excused_s_ = (changes == excused_changes_ ? excused_s_ : 0) + late;
        excused_changes_ = changes;
    }

    Activity own_activity() const {
        Activity own = activity::now();
        if (own.changes == excused_changes_)
            own.seconds -= excused_s_;
        return own;
    }

    std::optional<Stall> look(double now) {
        const Activity own = own_activity();
        detector_.heard(rank_, own, now);
        if (!heartbeats_)
            return detector_.judge_work(now);
        heartbeats_->send(own);
        heartbeats_->receive([&](int rank, const Beat& beat) {
            detector_.heard(rank, beat.activity, now);
            if (beat.last)
                detector_.left(rank);
        });
        return rank_ == 0 ? detector_.judge(now) : detector_.judge_silence(0, grace_s(rank_), now);
    }

    int rank_;
    std::function<void(const Stall&)> end_;
    std::chrono::milliseconds period_;
    StallDetector detector_;
    std::optional<Heartbeats> heartbeats_;
    double excused_s_ = 0;
    std::int64_t excused_changes_ = -1;

    std::mutex mutex_;
    std::condition_variable changed_;
    bool ending_ = false;
    bool in_order_ = true;
    std::thread thread_;  // last: ends before what it uses
};

Watchdog::Watchdog(const MpiEnvironment& environment,
                   const HostComm& world,
                   const WatchdogOptions& options) {
    if (options.stall_timeout <= 0)
        return;
    const bool beats = world.size() > 1 && environment.thread_support() == ThreadSupport::multiple;
    watch_ = std::make_unique<Watch>(beats, world, options);
}

Watchdog::~Watchdog() = default;

}  // namespace hetseq
