#include "cut_costs.hpp"

#include <algorithm>
#include <utility>

#include "hetseq/util/error.hpp"

#include "message_times.hpp"

namespace hetseq {

namespace {

constexpr double worth_memory = 0.99;  // of the time without

SimulatedPipeline simulate(const CutCosts& costs, std::size_t micro_batches, std::size_t extra) {
    std::vector<PipelineStage> stages;
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
        const CutCosts::Stage& stage = costs.stages[s];
        stages.push_back({std::vector<double>(micro_batches, stage.forward_ms),
                          std::vector<double>(micro_batches, stage.backward_ms),
                          most_in_flight(costs.stages.size(), s, extra),
                          stage.host});
    }
    return simulate_pipeline(stages, costs.links);
}

// When all is done: groups of tied parameters are summed in turn.
double end_ms(const CutCosts& costs, const SimulatedPipeline& simulated) {
    std::vector<double> free_ms;  // by stage
    for (const SimulatedStage& stage : simulated.stages)
        free_ms.push_back(stage.end_ms);
    for (const CutCosts::Sum& sum : costs.sums) {
        for (std::size_t i = 0; i < sum.sends_ms.size(); ++i)
            free_ms[sum.stages[i]] += sum.sends_ms[i];
        if (sum.together_ms == 0)
            continue;
        double last_ms = 0;
        for (const std::size_t s : sum.stages)
            last_ms = std::max(last_ms, free_ms[s]);
        for (const std::size_t s : sum.stages)
            free_ms[s] = last_ms + sum.together_ms;
    }
    return std::max(simulated.makespan_ms, std::ranges::max(free_ms));
}

// Of the cards of the hosts in front and behind; nothing within one host.
BoundaryCards cards(const CutCosts& costs, std::size_t link) {
    const PipelineLink& messages = costs.links[link];
    const auto &front = costs.stages[link].host, &behind = costs.stages[link + 1].host;
    return front && front == behind ? BoundaryCards{} : cards_of(messages);
}

}  // namespace

double period_ms(const CutCosts& costs) {
    double longest_ms = 0;
    BoundaryCards before;
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
        BoundaryCards after;
        if (s < costs.links.size()) {
            after = cards(costs, s);
            longest_ms =
                std::max({longest_ms, costs.links[s].forward_ms, costs.links[s].backward_ms});
        }
        longest_ms = std::max({longest_ms,
                               costs.stages[s].forward_ms + costs.stages[s].backward_ms,
                               before.behind_out + after.front_out,
                               before.behind_in + after.front_in});
        before = after;
    }
    return longest_ms;
}

double latency_ms(const CutCosts& costs) {
    double sum_ms = 0;
    for (const CutCosts::Stage& stage : costs.stages)
        sum_ms += stage.forward_ms + stage.backward_ms;
    for (const PipelineLink& link : costs.links)
        sum_ms += link.forward_ms + link.backward_ms;
    return sum_ms;
}

double score_ms(std::size_t micro_batches, double period_ms, double latency_ms) {
    return static_cast<double>(micro_batches - 1) * period_ms + latency_ms;
}

void check_stages(std::span<const ChainStage> stages, std::size_t units) {
    std::size_t end = 0;
    for (const ChainStage& stage : stages) {
        HETSEQ_ASSERT(stage.begin == end && stage.end > stage.begin);
        end = stage.end;
    }
    HETSEQ_ASSERT(end == units);
}

StageMemory CutCosts::Stage::memory(std::size_t in_flight) const {
    return {fixed_mb + static_cast<double>(in_flight) * in_flight_mb, usable_mb};
}

PipelineCut evaluate(const CutCosts& costs, std::size_t micro_batches, std::size_t extra) {
    const SimulatedPipeline simulated = simulate(costs, micro_batches, extra);
    PipelineCut cut;
    cut.extra_in_flight = extra;
    cut.predicted_ms = end_ms(costs, simulated);
    cut.period_ms = period_ms(costs);
    if (cut.predicted_ms > 0)
        cut.bubble = 1 - (1 - simulated.bubble) * simulated.makespan_ms / cut.predicted_ms;
    cut.score_ms = score_ms(micro_batches, cut.period_ms, latency_ms(costs));
    for (std::size_t s = 0; s < costs.stages.size(); ++s)
        cut.memory.push_back(costs.stages[s].memory(most_in_flight(costs.stages.size(), s, extra)));
    return cut;
}

PipelineCut with_more_in_flight(const CutCosts& costs, std::size_t micro_batches, PipelineCut cut) {
    for (std::size_t extra = cut.extra_in_flight + 1; extra < costs.stages.size(); ++extra) {
        PipelineCut more = evaluate(costs, micro_batches, extra);
        if (!more.fits() || more.predicted_ms > worth_memory * cut.predicted_ms)
            break;
        more.stages = std::move(cut.stages);
        cut = std::move(more);
    }
    return cut;
}

}  // namespace hetseq
