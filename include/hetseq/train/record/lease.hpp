#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace hetseq {

/// A process that has a run's folder for itself.
struct LeaseHolder {
    std::string token;  // of this start alone
    std::string host;
    std::string boot;           // of the host's kernel
    std::string pid_namespace;  // process ids of two namespaces say nothing about each other
    std::int64_t pid = 0;
    std::int64_t process_start = 0;  // [clock ticks since boot]; a later process may have its id
    std::string job;                 // the scheduler's, with the element of an array; empty: none
    std::string chain{};             // of jobs that continue each other; empty: none
    std::int64_t restarted = 0;      // starts of the job before this one, which have all ended

    /// Whether a process of `this` can tell if `other` lives.
    bool can_see(const LeaseHolder& other) const;
    /// "process 123 on node07 (job 42)".
    std::string text() const;
};

/// The contents of RUN/lease.json.
struct Lease {
    LeaseHolder holder;
    std::int64_t beats = 0;  // grows as long as the holder lives
};

/// Always of the same length for the same holder, so that it can be written in place.
std::string lease_json(const Lease& lease);
/// Empty if `text` is no lease, or not yet: its holder has just made the file.
std::optional<Lease> parse_lease(const std::string& text);

struct LeaseTimes {
    double beat_s = 5;        // between two beats of a holder
    double look_s = 1;        // between two looks of a process that wants the folder
    double still_s = 60;      // without a beat, after which the holder is taken for dead
    double same_job_s = 600;  // that a start waits for an earlier start of the same job
};

/// Judges, for `self`, a lease that another process left or holds. Pure: it knows only what it is
/// shown, and the caller's monotonic clock [s]. Clocks of other hosts and times of files say
/// nothing.
class LeaseJudge {
public:
    enum class Verdict { take, wait, refuse };

    /// `is_alive` is asked about holders that `self` can see.
    LeaseJudge(LeaseHolder self,
               LeaseTimes times,
               std::function<bool(const LeaseHolder&)> is_alive);

    /// `text`: of the lease as it is now; empty if there is none.
    Verdict judge(const std::optional<std::string>& text, double now);
    /// What the last verdict rests on: "process 123 on node07 is gone".
    const std::string& why() const noexcept { return why_; }
    /// Whether the verdict is an earlier start of the same job.
    bool is_same_job() const noexcept { return same_job_; }

private:
    void see(const std::string& text, double now);
    Verdict conclude(Verdict verdict, std::string why);

    LeaseHolder self_;
    LeaseTimes times_;
    std::function<bool(const LeaseHolder&)> is_alive_;
    std::optional<std::string> text_;  // as it was seen last
    std::string token_;
    bool is_beating_ = false;  // it changed while it was watched
    bool same_job_ = false;
    double still_s_ = 0;
    double waited_s_ = 0;
    double looked_at_ = 0;
    bool has_looked_ = false;
    std::string why_;
};

}  // namespace hetseq
