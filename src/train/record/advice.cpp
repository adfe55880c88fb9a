#include "hetseq/train/record/advice.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/train/record/speed_watch.hpp"
#include "hetseq/train/record/summary.hpp"

namespace hetseq {

namespace {

// Shares of an update's time above which advice is given.
constexpr double idling = 0.1;
constexpr double communicating = 0.15;
constexpr double loading = 0.05;
constexpr double bubbling = 0.35;  // one of few stages and micro-batches is always there

std::string percent(double share) {
    return percent_text(share, 2);
}

struct Host {
    double wait_ms = 0;  // of its rank that waits least
    double unit_ms = 0;  // of that rank
    std::int64_t units = 0;
};

std::map<std::string, Host> hosts_of(const Summary& summary) {
    std::map<std::string, Host> hosts;
    for (const Summary::Rank& rank : summary.ranks) {
        const auto [place, is_new] = hosts.try_emplace(rank.host);
        Host& host = place->second;
        if (is_new || rank.ms[RankTime::wait] < host.wait_ms) {
            host.wait_ms = rank.ms[RankTime::wait];
            host.unit_ms = rank.unit_ms;
        }
        host.units += rank.units;
    }
    return hosts;
}

// The host of the rank that waits least, since it computes longest.
const std::string& slowest_host(const Summary& summary) {
    return std::min_element(summary.ranks.begin(),
                            summary.ranks.end(),
                            [](const Summary::Rank& a, const Summary::Rank& b) {
                                return a.ms[RankTime::wait] < b.ms[RankTime::wait];
                            })
        ->host;
}

std::string why_idle(const Summary& summary, double spare_ms, const Host& host) {
    if (summary.policy != "auto")
        return "batches are not cut by measured speed; --balance auto does that";
    if (host.unit_ms < spare_ms)
        return "speeds are not those that shares were cut by; shares adapt only to changes that "
               "last";
    return "one more sample would take longer than that; a larger --batch-size would use this time";
}

// "h1, h2, h3 and 4 more"
std::string first_names(const std::vector<std::string>& names) {
    constexpr std::size_t shown = 3;
    const std::size_t count = std::min(shown, names.size());
    return join(std::span(names).first(count), ", ") +
           (names.size() > shown ? " and " + std::to_string(names.size() - shown) + " more" : "");
}

// All hosts wait for the links. What a host waits beyond that, it waits for the slowest one.
void advise_on_idling(const Summary& summary, std::vector<std::string>& lines) {
    const double step_ms = summary.step_ms.median;
    const double communication_ms = summary.communication_share() * step_ms;
    std::vector<std::string> without_work;
    std::map<std::string, std::vector<std::string>> idle;  // by reason
    std::map<std::string, double> most_ms;
    for (const auto& [name, host] : hosts_of(summary)) {
        const double spare_ms = host.wait_ms - communication_ms;
        if (host.units == 0) {
            without_work.push_back(name);
        } else if (spare_ms > idling * step_ms) {
            const std::string reason = why_idle(summary, spare_ms, host);
            idle[reason].push_back(name);
            most_ms[reason] = std::max(most_ms[reason], spare_ms);
        }
    }
    if (!without_work.empty() && summary.policy == "auto")
        lines.push_back(first_names(without_work) +
                        " had no work: too slow to help at this batch size");
    for (const auto& [reason, names] : idle)
        lines.push_back(first_names(names) + (names.size() > 1 ? " idle up to " : " idles ") +
                        percent(most_ms[reason] / step_ms) + " of each update, waiting for " +
                        slowest_host(summary) + " to compute: " + reason);
}

bool works(const Summary& summary, const Summary::Worker& worker) {
    return summary.ranks.at(static_cast<std::size_t>(worker.ranks.front())).share > 0;
}

// A pipeline's start and its end, in which some stages have nothing yet or any more, are as long as
// it, whatever the number of micro-batches.
void advise_on_bubbles(const Summary& summary, std::vector<std::string>& lines) {
    double most = 0;
    for (const Summary::Worker& worker : summary.workers)
        if (worker.ms > 0 && works(summary, worker))
            most = std::max(most, summary.bubble(worker));
    if (most > bubbling)
        lines.push_back("stages compute nothing in " + percent(most) +
                        " of an update's time: more micro-batches an update (a larger "
                        "--batch-size, or a smaller --max-sentences or --max-tokens) make their "
                        "part smaller, and --stage-units auto cuts by measured speeds");
}

}  // namespace

std::vector<std::string> advice(const Summary& summary) {
    std::vector<std::string> lines;
    if (summary.ranks.size() < 2 || summary.step_ms.median <= 0)
        return lines;
    if (!summary.workers.empty())
        advise_on_bubbles(summary, lines);
    else
        advise_on_idling(summary, lines);
    for (const SlowRank& slow : summary.slow)
        lines.push_back("rank " + std::to_string(slow.rank) + " on " +
                        summary.ranks.at(slow.rank).host + " computes at " +
                        percent_text(slow.speed, 2) +
                        " of the speed of like devices: " + cost_text(slow) + drop_advice(slow));
    const double communication = summary.communication_share();
    if (communication > communicating && summary.workers.empty())
        lines.push_back("communication takes " + percent(communication) +
                        " of each update on every rank: links, not devices, are the limit; a "
                        "larger --batch-size or fewer hosts would lose less");
    for (const Summary::Rank& rank : summary.ranks)
        if (rank.ms[RankTime::data] > loading * summary.step_ms.median)
            lines.push_back(
                "rank " + std::to_string(rank.rank) + " waits " +
                percent(std::min(rank.ms[RankTime::data] / summary.step_ms.median, 1.0)) +
                " of each update for data: raise --cache-mb, or give loading a core; "
                "for data in Python, raise --data-workers");
    return lines;
}

}  // namespace hetseq
