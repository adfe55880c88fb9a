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
    : costs_{costs}, counts_{counts}, period_ms_{period_ms} {
    add_links();
    fronts_ = cards_allow_all() ? 1 : costs.classes();
    least_ms_.assign(counts.ways() * costs.classes() * costs.units() * fronts_, unreachable);
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
    find_behind(way, end, device_class);
    const std::size_t in_flight = counts_.total(way) + 1;
    const std::size_t with_it = counts_.with_one_more(way, device_class);
    for (std::size_t begin = end; !behind_.empty() && begin-- > 0;) {
        const ChainStage stage{device_class, begin, end};
        const double stage_ms = costs_.stage_ms(stage);
        if (costs_.units_ms(stage) > period_ms_)
            return;  // more units take longer
        if (stage_ms > period_ms_ || costs_.most_in_flight(stage) < in_flight)
            continue;
        for (std::size_t front = 0; front < (begin > 0 ? fronts_ : 1); ++front) {
            double& least = least_ms_[index(with_it, front, device_class, begin)];
            for (const Behind& behind : behind_)
                if (fronts_ == 1 || cards_allow(front, stage, behind.next)) {
                    least = std::min(least, stage_ms + behind.ms);
                    break;
                }
        }
    }
}

// Behind a stage that ends at `end`; `way`: the devices that follow it.
void LatencyTable::find_behind(std::size_t way, std::size_t end, std::size_t device_class) {
    behind_.clear();
    if (end == costs_.units()) {
        if (way == 0)
            behind_.push_back({});
        return;
    }
    for (std::size_t next = 0; next < costs_.classes(); ++next) {
        const double ms =
            link_ms(end - 1, device_class, next) + least_ms_[index(way, device_class, next, end)];
        if (ms < unreachable)
            behind_.push_back({ms, next});
    }
    std::sort(behind_.begin(), behind_.end(), [](const Behind& a, const Behind& b) {
        return a.ms < b.ms;
    });
}

bool LatencyTable::cards_allow_all() const {
    BoundaryCards most;
    for (std::size_t unit = 0; unit + 1 < costs_.units(); ++unit)
        for (std::size_t front = 0; front < costs_.classes(); ++front)
            for (std::size_t behind = 0; behind < costs_.classes(); ++behind) {
                const BoundaryCards& cards = costs_.cards(unit, front, behind);
                most.front_out = std::max(most.front_out, cards.front_out);
                most.front_in = std::max(most.front_in, cards.front_in);
                most.behind_out = std::max(most.behind_out, cards.behind_out);
                most.behind_in = std::max(most.behind_in, cards.behind_in);
            }
    return most.behind_out + most.front_out <= period_ms_ &&
           most.behind_in + most.front_in <= period_ms_;
}

// Whether the messages of a stage take no more of its host's card than the period, each way.
bool LatencyTable::cards_allow(std::size_t front, const ChainStage& stage, std::size_t next) const {
    double out_ms = 0, in_ms = 0;
    if (stage.begin > 0) {
        const BoundaryCards& cards = costs_.cards(stage.begin - 1, front, stage.device_class);
        out_ms += cards.behind_out;
        in_ms += cards.behind_in;
    }
    if (stage.end < costs_.units()) {
        const BoundaryCards& cards = costs_.cards(stage.end - 1, stage.device_class, next);
        out_ms += cards.front_out;
        in_ms += cards.front_in;
    }
    return out_ms <= period_ms_ && in_ms <= period_ms_;
}

// A* with the table as the exact time of the rest: prefixes of the best cut come first, and ties in
// the order of cuts.
std::vector<std::vector<ChainStage>> LatencyTable::best(std::size_t most) const {
    Queue queue;
    for (std::size_t way = 0; way < counts_.ways(); ++way)
        for (std::size_t c = 0; c < costs_.classes(); ++c)
            if (const double ms = least_ms_[index(way, 0, c, 0)]; ms < unreachable)
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
        if (end == costs_.units() && way == 0 && cards_allow(prefix.front, stage, 0)) {
            longer.least_ms = longer.before_ms = before_ms;
            queue.push(longer);
        }
        if (end == costs_.units())
            break;
        for (std::size_t next = 0; next < costs_.classes(); ++next) {
            const double link = link_ms(end - 1, prefix.next, next);
            const double rest = least_ms_[index(way, prefix.next, next, end)];
            if (link + rest == unreachable || !cards_allow(prefix.front, stage, next))
                continue;
            Prefix chosen = longer;
            chosen.key.push_back(next);
            chosen.next = next;
            chosen.front = prefix.next;
            chosen.before_ms = before_ms + link;
            chosen.least_ms = chosen.before_ms + rest;
            queue.push(std::move(chosen));
        }
    }
}

}  // namespace hetseq
