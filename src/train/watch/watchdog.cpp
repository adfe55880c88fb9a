#include "hetseq/train/watch/watchdog.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/launcher.hpp"
#include "hetseq/util/process/process_line.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/comm/heartbeats.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/train/watch/killed_ranks.hpp"

#include <pthread.h>

namespace hetseq {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds time_to_print{200};

constexpr unsigned patience_with_launcher_s = 6;
constexpr std::chrono::milliseconds often_enough_for_signals{250};

// A slow processor does not delay a wake-up by this much: the process was suspended.
constexpr double suspended_s = 1;

// If rank 0 is lost, all others miss it. The lowest rank reports first, and its end ends the
// others.
double grace_s(int rank) {
    return 1 + 0.25 * std::min(rank - 1, 8);
}

std::chrono::milliseconds beat_period(std::chrono::milliseconds usual, double stall_timeout) {
    if (stall_timeout <= 0)
        return usual;
    const Seconds often_enough{stall_timeout / 5};
    return std::min(usual, std::chrono::duration_cast<std::chrono::milliseconds>(often_enough));
}

}  // namespace

void end_stalled_job(const Stall& stall) {
    log::here(log::Level::error, "the job stalls: " + stall.text + "\n  " + process_line());
    if (stall.is_lost)
        end_launcher_if_stuck(patience_with_launcher_s);
    std::this_thread::sleep_for(time_to_print);
    MpiEnvironment::abort(static_cast<int>(ExitCode::device));
}

class Watchdog::Watch {
public:
    Watch(bool beats, const HostComm& world, const WatchdogOptions& options)
        : rank_{world.rank()},
          end_{options.end},
          usual_period_{options.period},
          farewell_{options.farewell},
          period_{beat_period(options.period, options.stall_timeout)},
          rule_{options.stall_timeout, options.judge},
          killed_ranks_{make_killed_ranks(world)},
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

    void change(double stall_timeout, Judge judge) {
        {
            const std::lock_guard lock{mutex_};
            next_rule_ = Rule{stall_timeout, judge};
        }
        changed_.notify_all();
    }

private:
    struct Rule {
        double stall_timeout = 0;  // [s]
        Judge judge = Judge::silence;
    };

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
                heartbeats_->finish(farewell_);
        } catch (const std::exception& error) {
            end_({{rank_}, message_of(error)});
        }
    }

    // False once the watch is over.
    bool sleep() {
        std::unique_lock lock{mutex_};
        const auto end = std::chrono::steady_clock::now() + period_;
        while (!ending_ && !next_rule_ && std::chrono::steady_clock::now() < end) {
            changed_.wait_for(lock, std::min(period_, often_enough_for_signals));
            if (signal_inbox::stop_signal() != 0)
                tell_killed();
        }
        if (next_rule_) {
            rule_ = *std::exchange(next_rule_, {});
            period_ = beat_period(usual_period_, rule_.stall_timeout);
            detector_.change_timeout(rule_.stall_timeout, monotonic_seconds());
        }
        return !ending_;
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

    // A launcher that has lost a rank asks the others to stop, and kills them a second later.
    void tell_killed() {
        if (const std::string text = killed_ranks_.look(); !text.empty())
            log::here(log::Level::error, text);
    }

    std::optional<Stall> look(double now) {
        tell_killed();
        const Activity own = own_activity();
        const std::string role = log::role();
        detector_.heard(rank_, own, now, role);
        if (heartbeats_) {
            heartbeats_->send(own, role);
            heartbeats_->receive([&](int rank, const Beat& beat) {
                detector_.heard(rank, beat.activity, now, beat.role.data());
                if (beat.last)
                    detector_.left(rank);
            });
        }
        return rule_.stall_timeout > 0 ? judge(now) : std::nullopt;
    }

    std::optional<Stall> judge(double now) const {
        const bool by_work = rule_.judge == Judge::work_and_silence;
        if (!heartbeats_)
            return by_work ? detector_.judge_work(now) : std::nullopt;
        if (rank_ != 0)
            return detector_.judge_silence(0, grace_s(rank_), now);
        return by_work ? detector_.judge(now) : detector_.judge_silence(now);
    }

    int rank_;
    std::function<void(const Stall&)> end_;
    std::chrono::milliseconds usual_period_;
    std::chrono::milliseconds farewell_;
    std::chrono::milliseconds period_;
    Rule rule_;
    KilledRanks killed_ranks_;
    StallDetector detector_;
    std::optional<Heartbeats> heartbeats_;
    double excused_s_ = 0;
    std::int64_t excused_changes_ = -1;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Rule> next_rule_;
    bool ending_ = false;
    bool in_order_ = true;
    std::thread thread_;  // last: ends before what it uses
};

Watchdog::Watchdog(const MpiEnvironment& environment,
                   const HostComm& world,
                   const WatchdogOptions& options) {
    const bool beats = world.size() > 1 && environment.thread_support() == ThreadSupport::multiple;
    watch_ = std::make_unique<Watch>(beats, world, options);
}

Watchdog::~Watchdog() = default;

void Watchdog::change(double stall_timeout, Judge judge) {
    watch_->change(stall_timeout, judge);
}

}  // namespace hetseq
