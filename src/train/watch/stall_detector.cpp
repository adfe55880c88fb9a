#include "hetseq/train/watch/stall_detector.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

std::string seconds_text(double seconds) {
    return (seconds < 10 ? format_number(seconds, 2) : std::to_string(std::llround(seconds))) +
           " s";
}

using Candidates = std::vector<std::pair<double, int>>;  // seconds over its limit, rank

// The rank that has taken longest comes first: others may be stuck behind it.
std::vector<int> ranks_of(Candidates candidates) {
    std::sort(candidates.begin(), candidates.end(), std::greater<>());
    std::vector<int> ranks;
    for (const auto& [seconds, rank] : candidates)
        ranks.push_back(rank);
    return ranks;
}

}  // namespace

StallDetector::StallDetector(std::vector<std::string> hosts, double timeout, double now)
    : timeout_{timeout} {
    for (std::string& host : hosts)
        ranks_.push_back({.host = std::move(host), .role = {}, .activity = {}, .heard_at = now});
}

void StallDetector::heard(int rank, const Activity& activity, double now, std::string role) {
    Rank& of = ranks_.at(static_cast<std::size_t>(rank));
    of.activity = activity;
    of.role = std::move(role);
    of.heard_at = now;
    double& longest = longest_[activity.waits ? 1 : 0][static_cast<std::size_t>(activity.phase)];
    longest = std::max(longest, activity.longest);
}

void StallDetector::change_timeout(double timeout, double now) {
    timeout_ = timeout;
    for (Rank& rank : ranks_)
        rank.heard_at = now;
}

void StallDetector::left(int rank) {
    ranks_.at(static_cast<std::size_t>(rank)).here = false;
}

void StallDetector::stood_still(double seconds) {
    for (Rank& rank : ranks_)
        rank.heard_at += seconds;
}

double StallDetector::silent(const Rank& rank, double now) const {
    return now - rank.heard_at;
}

// The last known phase of a silent rank says nothing about what it does now.
bool StallDetector::is_heard(const Rank& rank, double now) const {
    constexpr double some_beats = 5;  // [s]
    return silent(rank, now) <= std::min(some_beats, timeout_ / 2);
}

double StallDetector::in_stretch(const Rank& rank, double now) const {
    return rank.activity.seconds + silent(rank, now);
}

double StallDetector::longest(const Activity& activity) const {
    return longest_[activity.waits ? 1 : 0][static_cast<std::size_t>(activity.phase)];
}

double StallDetector::allowed(const Activity& activity) const {
    return timeout_ + longest(activity);
}

std::optional<Stall> StallDetector::judge(double now) const {
    if (auto stall = judge_silence(now))
        return stall;
    if (auto stall = judge_work(now))
        return stall;
    return judge_waits(now);
}

std::optional<Stall> StallDetector::judge_work(double now) const {
    Candidates slow;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const Rank& rank = ranks_[r];
        const double over = in_stretch(rank, now) - allowed(rank.activity);
        if (rank.here && is_heard(rank, now) && !rank.activity.waits && over > 0)
            slow.emplace_back(over, static_cast<int>(r));
    }
    if (slow.empty())
        return {};
    const auto ranks = ranks_of(std::move(slow));
    const Activity& activity = ranks_[static_cast<std::size_t>(ranks.front())].activity;
    return Stall{
        ranks,
        Explanation{
            who(ranks) + (ranks.size() == 1 ? " has been " : " have been ") +
                what(ranks.front(), now),
            "the longest that any rank ever needed for this was " + seconds_text(longest(activity)),
            "look at that process and its host (does a file system or a device hang?), or raise " +
                option_text()}
            .text()};
}

std::optional<Stall> StallDetector::judge_silence(double now) const {
    Candidates silent_ranks;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (ranks_[r].here && silent(ranks_[r], now) > timeout_)
            silent_ranks.emplace_back(silent(ranks_[r], now), static_cast<int>(r));
    if (silent_ranks.empty())
        return {};
    return lost(ranks_of(std::move(silent_ranks)), now);
}

std::optional<Stall> StallDetector::judge_silence(int rank, double grace, double now) const {
    const Rank& of = ranks_.at(static_cast<std::size_t>(rank));
    if (!of.here || silent(of, now) <= timeout_ + grace)
        return {};
    return lost({rank}, now);
}

Stall StallDetector::lost(const std::vector<int>& ranks, double now) const {
    const Rank& first = ranks_[static_cast<std::size_t>(ranks.front())];
    return {ranks,
            Explanation{who(ranks) + (ranks.size() == 1 ? " was" : " were") +
                            " not heard from for " + seconds_text(silent(first, now)),
                        "last seen " + phase_text(first.activity.phase, first.activity.update),
                        "check that its host and network link are up and that the process runs"}
                .text(),
            true};
}

std::optional<Stall> StallDetector::judge_waits(double now) const {
    std::vector<int> ranks;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const Rank& rank = ranks_[r];
        if (!rank.here)
            continue;
        if (!is_heard(rank, now) || !rank.activity.waits ||
            in_stretch(rank, now) <= allowed(rank.activity))
            return {};
        ranks.push_back(static_cast<int>(r));
    }
    if (ranks.empty())
        return {};
    const std::vector<int> behind = those_behind(ranks);
    const Activity& activity = ranks_[static_cast<std::size_t>(behind.front())].activity;
    const std::string who_is_behind =
        behind.size() < ranks.size()
            ? ", " + who(behind) + (behind.size() == 1 ? " is behind" : " are behind")
            : "";
    return Stall{
        ranks,
        Explanation{
            "all ranks wait for each other" + who_is_behind + ", " + what(behind.front(), now),
            "the longest such wait before was " + seconds_text(longest(activity)),
            "look at the network between the hosts and at the devices, or raise " + option_text()}
            .text()};
}

// The ranks in the earliest update, and among them those in the earliest phase.
std::vector<int> StallDetector::those_behind(const std::vector<int>& ranks) const {
    const auto place = [&](int rank) {
        const Activity& activity = ranks_[static_cast<std::size_t>(rank)].activity;
        return std::pair{activity.update, activity.phase};
    };
    auto first = place(ranks.front());
    for (const int rank : ranks)
        first = std::min(first, place(rank));
    std::vector<int> behind;
    std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(behind), [&](int rank) {
        return place(rank) == first;
    });
    return behind;
}

// "1 on node07", "1 on node07 (stage 1 of 3)".
std::string StallDetector::place_of(int rank) const {
    const Rank& of = ranks_[static_cast<std::size_t>(rank)];
    return std::to_string(rank) + " on " + of.host + (of.role.empty() ? "" : " (" + of.role + ")");
}

// "rank 1 on node07", "ranks 1 on node07, 3 on node08 and 7 more".
std::string StallDetector::who(const std::vector<int>& ranks) const {
    constexpr std::size_t shown = 8;
    if (ranks.size() == 1)
        return "rank " + place_of(ranks.front());
    std::string text = "ranks ";
    for (std::size_t i = 0; i < std::min(shown, ranks.size()); ++i)
        text += (i > 0 ? ", " : "") + place_of(ranks[i]);
    if (ranks.size() > shown)
        text += " and " + std::to_string(ranks.size() - shown) + " more";
    return text;
}

std::string StallDetector::option_text() const {
    return "--stall-timeout (now " + format_number(timeout_) + ")";
}

std::string StallDetector::what(int rank, double now) const {
    const Rank& of = ranks_[static_cast<std::size_t>(rank)];
    return phase_text(of.activity.phase, of.activity.update) + " for " +
           seconds_text(in_stretch(of, now));
}

}  // namespace hetseq
