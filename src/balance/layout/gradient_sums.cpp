#include "gradient_sums.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "balance/pipeline/message_times.hpp"

namespace hetseq {

namespace {

constexpr double negligible = 1e-9;  // of all gradients

double free_of(std::span<const int> ranks, const std::vector<double>& free_ms) {
    double latest = 0;
    for (const int rank : ranks)
        latest = std::max(latest, free_ms[static_cast<std::size_t>(rank)]);
    return latest;
}

void occupy(std::span<const int> ranks, double until_ms, std::vector<double>& free_ms) {
    for (const int rank : ranks)
        free_ms[static_cast<std::size_t>(rank)] = until_ms;
}

// Backward of the last micro-batch comes from the last unit to the first, through the links.
void delay_until_ready(const LayoutProblem& problem,
                       const SummedWorker& worker,
                       std::vector<double>& ready_ms) {
    const ChainProblem& chain = problem.sizes[worker.size].chain;
    double at_ms = worker.ms;
    for (std::size_t s = 0; s < worker.stages.size(); ++s) {
        const ChainStage& stage = worker.stages[s];
        if (s > 0 && chain.gradients_mb[stage.begin - 1] > 0) {
            const ChainLink link =
                worker.kind->link(chain, stage.device_class, worker.stages[s - 1].device_class);
            at_ms -= link.latency_ms + chain.gradients_mb[stage.begin - 1] * link.ms_per_mb;
        }
        for (std::size_t unit = stage.begin; unit < stage.end; ++unit) {
            ready_ms[unit] = std::max(ready_ms[unit], at_ms);
            at_ms -= chain.devices[stage.device_class].backward_ms[unit];
        }
    }
}

}  // namespace

// Of the parameters of unit i, the gradients of [i, j] count those that [i + 1, j] lacks: those
// whose next unit lies at j are missing there, and were counted up to j - 1.
GradientSums::GradientSums(const LayoutProblem& problem) : problem_{problem} {
    const std::size_t units = problem.units();
    const double all_mb = problem.gradients_mb(0, units);
    for (std::size_t unit = 0; unit < units; ++unit)
        unit_mb_.push_back(problem.gradients_mb(unit, unit + 1));
    const auto first_alone_mb = [&](std::size_t begin, std::size_t end) {
        return problem.gradients_mb(begin, end) -
               (begin + 1 < end ? problem.gradients_mb(begin + 1, end) : 0);
    };
    for (std::size_t i = 0; i < units; ++i)
        for (std::size_t j = i + 1; j < units; ++j) {
            const double mb = first_alone_mb(i, j) - first_alone_mb(i, j + 1);
            if (mb > negligible * all_mb)
                tied_.push_back({i, j, mb});
        }
}

std::vector<GradientSums::Segment> GradientSums::segments_of(
    std::span<const SummedWorker> workers) {
    std::set<std::size_t> ends;
    for (const SummedWorker& worker : workers)
        for (const ChainStage& stage : worker.stages)
            ends.insert(stage.end);
    std::vector<Segment> segments;
    for (const std::size_t end : ends)
        segments.push_back({segments.empty() ? 0 : segments.back().end, end, {}});
    for (const SummedWorker& worker : workers) {
        std::size_t s = 0;
        for (Segment& segment : segments) {
            while (worker.stages[s].end <= segment.begin)
                ++s;
            segment.ranks.push_back(worker.ranks[s]);
        }
    }
    return segments;
}

std::vector<double> GradientSums::ready_ms(std::span<const SummedWorker> workers) const {
    std::vector<double> ready_ms(problem_.units(), 0);
    if (problem_.is_late)
        return ready_ms;  // since the update before
    for (const SummedWorker& worker : workers)
        delay_until_ready(problem_, worker, ready_ms);
    return ready_ms;
}

// Without what units outside share: that is summed by others, too.
double GradientSums::own_mb(std::size_t begin, std::size_t end) const {
    const auto is_within = [&](std::size_t unit) { return begin <= unit && unit < end; };
    double mb = problem_.gradients_mb(begin, end);
    for (const TiedPair& tied : tied_)
        if (is_within(tied.first) != is_within(tied.second))
            mb -= tied.mb;
    return std::max(0.0, mb);
}

double GradientSums::end_ms(std::span<const SummedWorker> workers, double part) const {
    const std::vector<Segment> segments = segments_of(workers);
    const std::vector<double> ready = ready_ms(workers);
    std::vector<double> free_ms(problem_.ranks(), 0);
    double end_ms = 0;
    for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
        const double mb = own_mb(segment->begin, segment->end);
        if (segment->ranks.size() < 2 || mb <= 0)
            continue;
        double weights_mb = 0;
        for (std::size_t unit = segment->begin; unit < segment->end; ++unit)
            weights_mb += unit_mb_[unit];
        const double takes_ms = part * problem_.all_reduce_ms(segment->ranks, mb);
        double at_ms = free_of(segment->ranks, free_ms);
        for (std::size_t unit = segment->end; unit-- > segment->begin;)
            if (unit_mb_[unit] > 0)
                at_ms = std::max(at_ms, ready[unit]) + takes_ms * unit_mb_[unit] / weights_mb;
        occupy(segment->ranks, at_ms, free_ms);
        end_ms = std::max(end_ms, at_ms);
    }
    const bool by_messages =
        workers.size() == 1 && !problem_.is_late && !tied_in(workers.front()).empty();
    return std::max(end_ms,
                    by_messages ? tied_end_ms(workers.front(), ready, free_ms)
                                : tied_end_ms(segments, ready, part, free_ms));
}

const std::vector<TiedUnits>& GradientSums::tied_in(const SummedWorker& worker) const {
    return problem_.sizes[worker.size].chain.tied;
}

// Stages of one worker. Two send each other what they have, each when it is through.
double GradientSums::tied_end_ms(const SummedWorker& worker,
                                 std::span<const double> ready,
                                 std::vector<double>& free_ms) const {
    const ChainProblem& chain = problem_.sizes[worker.size].chain;
    const auto stage_ranks = [&](const std::vector<std::size_t>& stages) {
        std::vector<int> ranks;
        for (const std::size_t s : stages)
            ranks.push_back(worker.ranks[s]);
        return ranks;
    };
    double end_ms = 0;
    for (const TiedUnits& tied : chain.tied) {
        const std::vector<std::size_t> holders = tied.holders(worker.stages);
        const std::vector<int> ranks = stage_ranks(holders);
        if (holders.size() == 2) {
            for (const std::size_t from : {0, 1}) {
                const ChainStage& own = worker.stages[holders[from]];
                const ChainStage& other = worker.stages[holders[1 - from]];
                double& free = free_ms[static_cast<std::size_t>(ranks[from])];
                free = std::max(free, ready[own.begin]) +
                       message_ms(worker.kind->link(chain, own.device_class, other.device_class),
                                  tied.sent_mb(own));
                end_ms = std::max(end_ms, free);
            }
        } else if (holders.size() > 2) {
            double at_ms = free_of(ranks, free_ms);
            for (const std::size_t unit : tied.units)
                at_ms = std::max(at_ms, ready[unit]);
            at_ms += problem_.all_reduce_ms(ranks, tied.gradients_mb);
            occupy(ranks, at_ms, free_ms);
            end_ms = std::max(end_ms, at_ms);
        }
    }
    return end_ms;
}

double GradientSums::tied_end_ms(std::span<const Segment> segments,
                                 std::span<const double> ready,
                                 double part,
                                 std::vector<double>& free_ms) const {
    const auto segment_of = [&](std::size_t unit) {
        return std::find_if(segments.begin(), segments.end(), [&](const Segment& segment) {
            return unit < segment.end;
        });
    };
    double end_ms = 0;
    for (const TiedPair& tied : tied_) {
        const auto first = segment_of(tied.first), second = segment_of(tied.second);
        std::set<int> holders(first->ranks.begin(), first->ranks.end());
        holders.insert(second->ranks.begin(), second->ranks.end());
        if (first == second || holders.size() < 2)
            continue;
        const std::vector<int> ranks(holders.begin(), holders.end());
        const double at_ms = std::max(free_of(ranks, free_ms), ready[tied.first]) +
                             part * problem_.all_reduce_ms(ranks, tied.mb);
        occupy(ranks, at_ms, free_ms);
        end_ms = std::max(end_ms, at_ms);
    }
    return end_ms;
}

double GradientSums::whole_ms(std::span<const int> ranks) const {
    const double mb = problem_.gradients_mb(0, problem_.units());
    return ranks.size() < 2 || mb <= 0 ? 0 : problem_.all_reduce_ms(ranks, mb);
}

}  // namespace hetseq
