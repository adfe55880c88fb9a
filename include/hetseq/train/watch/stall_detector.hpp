#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/util/activity.hpp"

namespace hetseq {

/// The rank that stalls, and a text about it.
struct Stall {
    std::vector<int> ranks;
    std::string text;      // problem (why): what to do
    bool is_lost = false;  // they cannot be heard, and perhaps not be reached
};

/// Decides from the ranks' beats whether one of them stalls. Pure: times are the caller's clock, in
/// seconds. With a timeout T
/// - a rank stalls that is longer in work of its own than T beyond the longest stretch of that
///   phase any rank ever needed. Waiting for others is not work: an idle rank never stalls;
/// - a rank is lost that was not heard from for T: its host, its link or its whole process. Until
///   then it is not judged by what it was at last;
/// - communication is stuck when all wait for each other for longer than T beyond the longest wait.
class StallDetector {
public:
    /// `hosts` by rank, `timeout` [s].
    StallDetector(std::vector<std::string> hosts, double timeout, double now);

    void heard(int rank, const Activity& activity, double now);
    /// It left in order, and is not judged any more.
    void left(int rank);
    /// The whole of the caller's process stood still for that long (suspended by a scheduler) and
    /// could hear nobody.
    void stood_still(double seconds);

    std::optional<Stall> judge(double now) const;
    /// The first rule alone: for a rank that hears nobody but itself.
    std::optional<Stall> judge_work(double now) const;
    /// The second rule for one rank alone, with `grace` [s] more: for those that hear that one
    /// only.
    std::optional<Stall> judge_silence(int rank, double grace, double now) const;

private:
    struct Rank {
        std::string host;
        Activity activity;
        double heard_at = 0;
        bool here = true;
    };

    double silent(const Rank& rank, double now) const;
    bool is_heard(const Rank& rank, double now) const;
    double in_stretch(const Rank& rank, double now) const;
    double allowed(const Activity& activity) const;
    double longest(const Activity& activity) const;
    std::optional<Stall> judge_silence(double now) const;
    std::optional<Stall> judge_waits(double now) const;
    std::vector<int> those_behind(const std::vector<int>& ranks) const;
    std::string option_text() const;
    std::string who(const std::vector<int>& ranks) const;
    std::string what(int rank, double now) const;
    Stall lost(const std::vector<int>& ranks, double now) const;

    double timeout_;
    std::vector<Rank> ranks_;
    std::array<std::array<double, phase_count>, 2> longest_{};  // [s] by `waits` and phase
};

}  // namespace hetseq
