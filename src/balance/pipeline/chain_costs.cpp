#include "chain_costs.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

std::vector<double> sums_before(const std::vector<double>& times_ms) {
    std::vector<double> sums{0};
    for (const double ms : times_ms)
        sums.push_back(sums.back() + rounded_ms(ms));
    return sums;
}

void check_problem(const ChainProblem& problem) {
    const std::size_t units = problem.units();
    HETSEQ_ASSERT(units > 0 && problem.micro_batches > 0 && !problem.devices.empty());
    HETSEQ_ASSERT(problem.gradients_mb.size() == units);
    HETSEQ_ASSERT(problem.activations_mb_kept.size() == units);
    HETSEQ_ASSERT(problem.workspace_mb.size() == units);
    HETSEQ_ASSERT(problem.links.size() == problem.devices.size());
    for (const ChainDevices& devices : problem.devices)
        HETSEQ_ASSERT(devices.forward_ms.size() == units && devices.backward_ms.size() == units);
    for (const std::vector<ChainLink>& links : problem.links)
        HETSEQ_ASSERT(links.size() == problem.devices.size());
    for (const TiedUnits& tied : problem.tied)
        HETSEQ_ASSERT(std::all_of(
            tied.units.begin(), tied.units.end(), [&](std::size_t unit) { return unit < units; }));
}

}  // namespace

ChainCosts::ChainCosts(const ChainProblem& problem) : problem_{problem}, units_{problem.units()} {
    check_problem(problem);
    add_times();
    add_card_parts();
    add_boundaries();
    const std::size_t stages = classes() * (units_ + 1) * (units_ + 1);
    fixed_mb_.resize(stages);
    in_flight_mb_.resize(stages);
    most_in_flight_.resize(stages);
    for (std::size_t begin = 0; begin < units_; ++begin)
        add_memory(begin);
}

void ChainCosts::add_times() {
    for (const ChainDevices& devices : problem_.devices) {
        forward_before_ms_.push_back(sums_before(devices.forward_ms));
        backward_before_ms_.push_back(sums_before(devices.backward_ms));
    }
}

void ChainCosts::add_card_parts() {
    const auto way = [&](std::size_t a, std::size_t b) {
        return slower_way(problem_.links[a][b], problem_.links[b][a]);
    };
    std::vector<std::size_t> counts;
    for (const ChainDevices& devices : problem_.devices)
        counts.push_back(devices.count);
    for (std::size_t own = 0; own < classes(); ++own) {
        const double fastest = fastest_way(problem_.devices, counts, own, way);
        for (std::size_t other = 0; other < classes(); ++other)
            card_parts_.push_back(card_part_of(way(own, other), fastest));
    }
}

void ChainCosts::add_boundaries() {
    for (std::size_t unit = 0; unit < units_; ++unit)
        for (std::size_t front = 0; front < classes(); ++front)
            for (std::size_t behind = 0; behind < classes(); ++behind) {
                const double mb = problem_.gradients_mb[unit];
                Boundary& one = boundaries_.emplace_back();
                one.activations_ms =
                    message_ms(problem_.links[front][behind], problem_.activations_mb[unit]);
                one.gradients_ms = mb > 0 ? message_ms(problem_.links[behind][front], mb) : 0;
                if (!share_a_host(problem_.devices, front, behind))
                    one.cards = cards_of({.forward_ms = one.activations_ms,
                                          .backward_ms = one.gradients_ms,
                                          .front_card = card_part(front, behind),
                                          .behind_card = card_part(behind, front)});
            }
}

void ChainCosts::add_memory(std::size_t begin) {
    double kept_mb = 0, workspace_mb = 0;
    const double received_mb = begin > 0 ? problem_.activations_mb[begin - 1] : 0;
    for (std::size_t end = begin + 1; end <= units_; ++end) {
        kept_mb += problem_.activations_mb_kept[end - 1];
        workspace_mb = std::max(workspace_mb, problem_.workspace_mb[end - 1]);
        const double sent_mb = end < units_ ? problem_.activations_mb[end - 1] : 0;
        for (std::size_t c = 0; c < classes(); ++c) {
            const ChainStage stage{c, begin, end};
            fixed_mb_[index(stage)] = problem_.devices[c].process_mb +
                                      problem_.state_mb(begin, end, c) + sent_mb + workspace_mb;
            in_flight_mb_[index(stage)] = kept_mb + received_mb;
            add_most_in_flight(stage);
        }
    }
}

void ChainCosts::add_most_in_flight(const ChainStage& stage) {
    std::size_t& most = most_in_flight_[index(stage)];
    while (most < units_ &&
           memory_mb(stage, most + 1) <= problem_.devices[stage.device_class].memory_mb)
        ++most;
}

double ChainCosts::forward_ms(const ChainStage& stage) const {
    const std::vector<double>& before = forward_before_ms_[stage.device_class];
    return before[stage.end] - before[stage.begin] + forward_messages_ms(problem_, stage);
}

double ChainCosts::backward_ms(const ChainStage& stage) const {
    const std::vector<double>& before = backward_before_ms_[stage.device_class];
    return before[stage.end] - before[stage.begin] + backward_messages_ms(problem_, stage);
}

double ChainCosts::stage_ms(const ChainStage& stage) const {
    return forward_ms(stage) + backward_ms(stage);
}

double ChainCosts::units_ms(const ChainStage& stage) const {
    const std::vector<double>&forward = forward_before_ms_[stage.device_class],
          &backward = backward_before_ms_[stage.device_class];
    return forward[stage.end] - forward[stage.begin] + backward[stage.end] - backward[stage.begin];
}

double ChainCosts::memory_mb(const ChainStage& stage, std::size_t in_flight) const {
    return fixed_mb_[index(stage)] + static_cast<double>(in_flight) * in_flight_mb_[index(stage)];
}

CutCosts::Sum ChainCosts::sum(const TiedUnits& tied, std::span<const ChainStage> stages) const {
    CutCosts::Sum sum{.stages = tied.holders(stages)};
    const std::size_t holders = sum.stages.size();
    if (holders == 2) {
        for (const std::size_t from : {0, 1}) {
            const ChainStage &own = stages[sum.stages[from]], &other = stages[sum.stages[1 - from]];
            sum.sends_ms.push_back(message_ms(problem_.links[own.device_class][other.device_class],
                                              tied.sent_mb(own)));
        }
    } else if (holders > 2) {
        sum.together_ms = ring_ms(stages, sum.stages, tied.gradients_mb);
    }
    return sum;
}

// The slowest link counts: of k stages each sends 2 (k - 1) messages of a k-th.
double ChainCosts::ring_ms(std::span<const ChainStage> stages,
                           const std::vector<std::size_t>& ring,
                           double mb) const {
    const std::size_t count = ring.size();
    double longest_ms = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t from = stages[ring[i]].device_class;
        const std::size_t to = stages[ring[(i + 1) % count]].device_class;
        longest_ms = std::max(
            longest_ms, message_ms(problem_.links[from][to], mb / static_cast<double>(count)));
    }
    return 2 * static_cast<double>(count - 1) * longest_ms;
}

CutCosts ChainCosts::cut(std::span<const ChainStage> stages) const {
    CutCosts cut;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const ChainDevices& devices = problem_.devices[stages[s].device_class];
        cut.stages.push_back({forward_ms(stages[s]),
                              backward_ms(stages[s]),
                              fixed_mb_[index(stages[s])],
                              in_flight_mb_[index(stages[s])],
                              devices.memory_mb,
                              devices.host});
        if (s + 1 == stages.size())
            break;
        const std::size_t unit = stages[s].end - 1;
        const std::size_t front = stages[s].device_class, behind = stages[s + 1].device_class;
        cut.links.push_back({activations_ms(unit, front, behind),
                             gradients_ms(unit, front, behind),
                             problem_.gradients_mb[unit] > 0,
                             card_part(front, behind),
                             card_part(behind, front)});
    }
    for (const TiedUnits& tied : problem_.tied)
        cut.sums.push_back(sum(tied, stages));
    return cut;
}

}  // namespace hetseq
