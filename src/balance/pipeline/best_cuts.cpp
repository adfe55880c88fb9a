#include "best_cuts.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <set>
#include <tuple>

#include "device_counts.hpp"
#include "latency_table.hpp"

namespace hetseq {

namespace {

void sort_once(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
}

// What the messages of a stage of a class can take of its card, each way [ms]: those to and from
// the stage in front beside those of the next one.
void add_card_times(const ChainCosts& costs, std::size_t c, std::vector<double>& periods) {
    std::vector<double> out_front, in_front, out_next, in_next;
    for (std::size_t unit = 0; unit + 1 < costs.units(); ++unit)
        for (std::size_t other = 0; other < costs.classes(); ++other) {
            out_front.push_back(costs.cards(unit, other, c).behind_out);
            in_front.push_back(costs.cards(unit, other, c).behind_in);
            out_next.push_back(costs.cards(unit, c, other).front_out);
            in_next.push_back(costs.cards(unit, c, other).front_in);
        }
    for (std::vector<double>* times : {&out_front, &in_front, &out_next, &in_next})
        sort_once(*times);
    for (const double front : out_front)
        for (const double next : out_next)
            periods.push_back(front + next);
    for (const double front : in_front)
        for (const double next : in_next)
            periods.push_back(front + next);
}

// All values that the period of a cut can have, in order [ms].
std::vector<double> possible_periods(const ChainCosts& costs) {
    const std::vector<ChainDevices>& devices = costs.problem().devices;
    std::vector<double> periods;
    for (std::size_t c = 0; c < costs.classes(); ++c)
        for (std::size_t begin = 0; devices[c].count > 0 && begin < costs.units(); ++begin)
            for (std::size_t end = begin + 1; end <= costs.units(); ++end)
                if (costs.most_in_flight({c, begin, end}) > 0)
                    periods.push_back(costs.stage_ms({c, begin, end}));
    for (std::size_t unit = 0; unit + 1 < costs.units(); ++unit)
        for (std::size_t front = 0; front < costs.classes(); ++front)
            for (std::size_t behind = 0; behind < costs.classes(); ++behind) {
                periods.push_back(costs.activations_ms(unit, front, behind));
                periods.push_back(costs.gradients_ms(unit, front, behind));
            }
    for (std::size_t c = 0; c < costs.classes(); ++c)
        add_card_times(costs, c, periods);
    sort_once(periods);
    return periods;
}

// For a limit to the period, the best cuts are those of least latency. A limit need not be tried
// where all cuts that it could bring are known, or worse than the best known ones.
class PeriodSearch {
public:
    PeriodSearch(const ChainCosts& costs, std::size_t most)
        : costs_{costs}, most_{most}, counts_{costs.problem()}, periods_{possible_periods(costs)} {}

    std::vector<ScoredCut> run() {
        if (!periods_.empty())
            try_limit(0, periods_.size() - 1);
        while (!untried_.empty()) {
            const Untried limits = untried_.top();
            untried_.pop();
            if (!is_promising(limits.bound))
                break;  // nor are those behind it in the queue
            split(limits);
        }
        return {best_.begin(), best_.end()};
    }

private:
    // Limits periods_[begin] to periods_[end - 1]. Cuts with these periods that are not known yet
    // take longer than `last`, or as long and come behind it.
    struct Untried {
        std::size_t begin = 0, end = 0;
        std::vector<ChainStage> last;
        double last_ms = 0;  // its latency
        ScoredCut bound;     // no unknown cut comes before this one

        bool operator>(const Untried& other) const { return other.bound < bound; }
    };

    bool is_promising(const ScoredCut& bound) const {
        return best_.size() < most_ || bound < *best_.rbegin();
    }

    void split(const Untried& limits) {
        std::size_t end = limits.end;
        if (best_.size() == most_)
            while (score(periods_[end - 1], limits.last_ms) > best_.rbegin()->score_ms)
                --end;
        const std::size_t middle = limits.begin + (end - limits.begin) / 2;
        add(middle + 1, end, limits.last, limits.last_ms);
        try_limit(limits.begin, middle);
    }

    double score(double period, double latency) const {
        return score_ms(costs_.problem().micro_batches, period, latency);
    }

    // Looks at the limit periods_[at]; below it, those from `begin` on remain untried.
    void try_limit(std::size_t begin, std::size_t at) {
        const auto cuts = LatencyTable{costs_, counts_, periods_[at]}.best(most_);
        double longest_ms = 0;
        for (const std::vector<ChainStage>& stages : cuts) {
            const CutCosts cut = costs_.cut(stages);
            const double period = period_ms(cut);
            longest_ms = std::max(longest_ms, period);
            best_.insert({score(period, latency_ms(cut)), stages});
        }
        while (best_.size() > most_)
            best_.erase(std::prev(best_.end()));
        if (cuts.size() < most_)
            return;  // there are no others with this limit or a lower one
        // Limits that still allow all of these bring nothing new.
        const auto end = std::lower_bound(periods_.begin(), periods_.end(), longest_ms);
        add(begin,
            static_cast<std::size_t>(end - periods_.begin()),
            cuts.back(),
            latency_ms(costs_.cut(cuts.back())));
    }

    void add(std::size_t begin,
             std::size_t end,
             const std::vector<ChainStage>& last,
             double last_ms) {
        if (begin < end)
            untried_.push({begin, end, last, last_ms, {score(periods_[begin], last_ms), last}});
    }

    const ChainCosts& costs_;
    std::size_t most_;
    DeviceCounts counts_;
    std::vector<double> periods_;  // ascending
    std::set<ScoredCut> best_;
    std::priority_queue<Untried, std::vector<Untried>, std::greater<>> untried_;
};

}  // namespace

bool operator<(const ScoredCut& a, const ScoredCut& b) {
    const std::size_t a_devices = a.stages.size(), b_devices = b.stages.size();
    return std::tie(a.score_ms, a_devices, a.stages) < std::tie(b.score_ms, b_devices, b.stages);
}

std::vector<ScoredCut> best_cuts(const ChainCosts& costs, std::size_t most) {
    return PeriodSearch{costs, most}.run();
}

}  // namespace hetseq
