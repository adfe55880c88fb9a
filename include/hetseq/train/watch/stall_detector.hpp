#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/util/process/activity.hpp"

namespace hetseq {

/// The rank that stalls, and a text about it.
struct Stall {
    std::vector<int> ranks;
    std::string text;      // problem (why): what to do
    bool is_lost = false;  // they cannot be heard, and perhaps not be reached
};

/// Decides from the ranks' beats whether one of them stalls. Pure: times are the caller's clock, in
/// seconds. With a timeout T
/// - a rank stalls if it has worked for more than T longer than any rank ever needed for that
///   phase. Waiting for others is not work, so an idle rank never stalls;
/// - a rank is lost if it was not heard from for T: its host, its link or its whole process is
///   gone. Until then it is not judged by what it did last;
/// - communication is stuck if all wait for each other for more than T longer than the longest
///   wait.
class StallDetector {
public:
    /// `hosts` by rank, `timeout` [s].
    StallDetector(std::vector<std::string> hosts, double timeout, double now);

    /// Another timeout [s]; all ranks count as heard from now.
    void change_timeout(double timeout, double now);

    /// `role`: its part in the job, "stage 1 of 3", for messages; may be empty.
    void heard(int rank, const Activity& activity, double now, std::string role = {});
    /// The rank left in order and is not judged any more.
    void left(int rank);
    /// The caller's whole process stood still for that long (suspended by a scheduler) and could
    /// not hear the others.
    void stood_still(double seconds);

    std::optional<Stall> judge(double now) const;
    /// Only the second rule.
    std::optional<Stall> judge_silence(double now) const;
    /// Only the first rule: for a rank that hears only itself.
    std::optional<Stall> judge_work(double now) const;
    /// Only the second rule, for one rank, with `grace` [s] more: for ranks that hear only that
    /// one.
    std::optional<Stall> judge_silence(int rank, double grace, double now) const;

private:
    struct Rank {
        std::string host, role;
        Activity activity;
        double heard_at = 0;
        bool here = true;
    };

    double silent(const Rank& rank, double now) const;
    bool is_heard(const Rank& rank, double now) const;
    double in_stretch(const Rank& rank, double now) const;
    double allowed(const Activity& activity) const;
    double longest(const Activity& activity) const;
    std::optional<Stall> judge_waits(double now) const;
    std::vector<int> those_behind(const std::vector<int>& ranks) const;
    std::string option_text() const;
    std::string place_of(int rank) const;
    std::string who(const std::vector<int>& ranks) const;
    std::string what(int rank, double now) const;
    Stall lost(const std::vector<int>& ranks, double now) const;

    double timeout_;
    std::vector<Rank> ranks_;
    std::array<std::array<double, phase_count>, 2> longest_{};  // [s] by `waits` and phase
};

}  // namespace hetseq
