#include "latency_table.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace hetseq {

namespace {

constexpr double unreachable = std::numeric_limits<double>::infinity();

std::vector<ChainStage> stages_of(const std::vector<std::size_t>& key) {
    std::vector<ChainStage> stages;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < key.size(); i += 2) {
        stages.push_back({key[i], begin, key[i + 1]});
        begin = key[i + 1];
    }
    return stages;
}

}  // namespace

class LatencyTable::Queue
    : public std::priority_queue<Prefix, std::vector<Prefix>, std::greater<>> {};

bool LatencyTable::Prefix::operator>(const Prefix& other) const {
    return std::tie(least_ms, devices, key) > std::tie(other.least_ms, other.devices, other.key);
}

// From the last unit up: the devices behind a stage are then known, and with them how many
// micro-batches it has in flight.
LatencyTable::LatencyTable(const ChainCosts& costs, const DeviceCounts& counts, double period_ms)
    : costs_{costs},
      counts_{counts},
      period_ms_{period_ms},
      least_ms_(counts.ways() * costs.classes() * costs.units(), unreachable) {
    add_links();
    for (std::size_t way = 0; way < counts_.ways(); ++way)
        for (std::size_t end = way == 0 ? costs_.units() : 1; end <= costs_.units(); ++end)
            for (std::size_t c = 0; c < costs_.classes(); ++c)
                if (counts_.has_more(way, c))
                    place(way, end, c);
}

void LatencyTable::add_links() {
    for (std::size_t unit = 0; unit + 1 < costs_.units(); ++unit)
        for (std::size_t front = 0; front < costs_.classes(); ++front)
            for (std::size_t behind = 0; behind < costs_.classes(); ++behind) {
                const double activations_ms = costs_.activations_ms(unit, front, behind);
                const double gradients_ms = costs_.gradients_ms(unit, front, behind);
                const bool is_allowed = activations_ms <= period_ms_ && gradients_ms <= period_ms_;
                link_ms_.push_back(is_allowed ? activations_ms + gradients_ms : unreachable);
            }
}

// Tries all stages that end at `end`, in front of what uses `way`.
void LatencyTable::place(std::size_t way, std::size_t end, std::size_t device_class) {
    const double after_ms = behind_ms(way, end, device_class);
    if (after_ms == unreachable)
        return;
    const std::size_t in_flight = counts_.total(way) + 1;
    const std::size_t with_it = counts_.with_one_more(way, device_class);
    for (std::size_t begin = end; begin-- > 0;) {
        const ChainStage stage{device_class, begin, end};
        const double stage_ms = costs_.stage_ms(stage);
        if (stage_ms > period_ms_)
            return;  // longer ones take longer
        double& least = least_ms(with_it, device_class, begin);
        if (stage_ms + after_ms < least && costs_.most_in_flight(stage) >= in_flight)
            least = stage_ms + after_ms;
    }
}

// The least time from the end of a stage on, there and back; `way`: the devices that follow it.
double LatencyTable::behind_ms(std::size_t way, std::size_t end, std::size_t device_class) const {
    if (end == costs_.units())
        return way == 0 ? 0 : unreachable;
    double least = unreachable;
    for (std::size_t next = 0; next < costs_.classes(); ++next)
        least = std::min(least, link_ms(end - 1, device_class, next) + least_ms(way, next, end));
    return least;
}

// A* with the table as the exact time of the rest: prefixes of the best cut come first, and ties in
// the order of cuts.
std::vector<std::vector<ChainStage>> LatencyTable::best(std::size_t most) const {
    Queue queue;
    for (std::size_t way = 0; way < counts_.ways(); ++way)
        for (std::size_t c = 0; c < costs_.classes(); ++c)
            if (const double ms = least_ms(way, c, 0); ms < unreachable)
                queue.push({.least_ms = ms,
                            .devices = counts_.total(way),
                            .key = {c},
                            .way = way,
                            .next = c});
    std::vector<std::vector<ChainStage>> cuts;
    while (cuts.size() < most && !queue.empty()) {
        const Prefix prefix = queue.top();
        queue.pop();
        if (prefix.begin == costs_.units())
            cuts.push_back(stages_of(prefix.key));
        else
            expand(prefix, queue);
    }
    return cuts;
}

void LatencyTable::expand(const Prefix& prefix, Queue& queue) const {
    const std::size_t in_flight = counts_.total(prefix.way);
    const std::size_t way = counts_.with_one_fewer(prefix.way, prefix.next);
    for (std::size_t end = prefix.begin + 1; end <= costs_.units(); ++end) {
        const ChainStage stage{prefix.next, prefix.begin, end};
        if (!allows(stage, in_flight))
            continue;
        Prefix longer{.devices = prefix.devices, .key = prefix.key, .begin = end, .way = way};
        longer.key.push_back(end);
        const double before_ms = prefix.before_ms + costs_.stage_ms(stage);
        if (end == costs_.units() && way == 0) {
            longer.least_ms = longer.before_ms = before_ms;
            queue.push(longer);
        }
        if (end == costs_.units())
            break;
        for (std::size_t next = 0; next < costs_.classes(); ++next) {
            const double link = link_ms(end - 1, prefix.next, next);
            const double rest = least_ms(way, next, end);
            if (link + rest == unreachable)
                continue;
            Prefix chosen = longer;
            chosen.key.push_back(next);
            chosen.next = next;
            chosen.before_ms = before_ms + link;
            chosen.least_ms = chosen.before_ms + rest;
            queue.push(std::move(chosen));
        }
    }
}

}  // namespace hetseq
