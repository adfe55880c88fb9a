#include "measured_ranks.hpp"

#include <algorithm>
#include <utility>

#include "hetseq/balance/median.hpp"
#include "hetseq/balance/usable_memory.hpp"

namespace hetseq {

namespace {

// What a CPU's memory holds for what is kept from forward to backward. Micro-batches differ in
// size, and are freed in another order than they were made in: so gaps stay between their tensors.
// BERT 8 x 512 took 1.5 to 1.9 of it.
constexpr double with_gaps = 1.5;

// The mean over pairs of unlike ranks.
ChainLink link_between(const std::vector<std::vector<LinkCost>>& links,
                       const std::vector<int>& from,
                       const std::vector<int>& to) {
    ChainLink sum;
    double pairs = 0;
    for (const int a : from)
        for (const int b : to)
            if (a != b) {
                const LinkCost& cost =
                    links[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
                sum.latency_ms += cost.latency_ms;
                sum.ms_per_mb += cost.ms_per_mb;
                ++pairs;
            }
    return pairs > 0 ? ChainLink{sum.latency_ms / pairs, sum.ms_per_mb / pairs} : ChainLink{};
}

}  // namespace

double MeasuredRanks::message_ms(const std::vector<int>& of) const {
    std::vector<double> values;
    for (const int rank : of)
        if (!message_ms_per_mb.empty())
            values.push_back(message_ms_per_mb[static_cast<std::size_t>(rank)]);
    return values.empty() ? 0 : median(std::move(values));
}

ChainProblem chain_problem(const MeasuredRanks& measured,
                           const std::vector<std::vector<UnitCost>>& costs,
                           std::int64_t micro_batches) {
    ChainProblem problem;
    const std::size_t units = costs.front().size();
    problem.micro_batches = static_cast<std::size_t>(micro_batches);
    const auto& classes = measured.classes.ranks;
    const auto over = [&](const std::vector<int>& ranks, std::size_t unit, double UnitCost::*of) {
        std::vector<double> values;
        for (const int rank : ranks)
            values.push_back(costs[static_cast<std::size_t>(rank)][unit].*of);
        return median(values);
    };
    problem.tied = measured.tied;
    for (std::size_t c = 0; c < classes.size(); ++c) {
        const std::vector<int>& ranks = classes[c];
        ChainDevices devices{.count = ranks.size()};
        devices.host = measured.classes.hosts[c];
        for (std::size_t u = 0; u < units; ++u) {
            devices.forward_ms.push_back(over(ranks, u, &UnitCost::forward_ms));
            devices.backward_ms.push_back(over(ranks, u, &UnitCost::backward_ms));
        }
        devices.message_ms_per_mb = measured.message_ms(ranks);
        devices.memory_mb = usable_memory * measured.memory.has_mb(ranks.front());
        for (const int rank : ranks)
            devices.process_mb = std::max(devices.process_mb, measured.memory.process_mb(rank));
        problem.devices.push_back(std::move(devices));
        auto& links = problem.links.emplace_back();
        for (const std::vector<int>& to : classes)
            links.push_back(link_between(measured.links, ranks, to));
    }
    const auto largest = [&](std::size_t unit, double UnitCost::*of) {
        double most = 0;
        for (const std::vector<int>& ranks : classes)
            most = std::max(most, over(ranks, unit, of));
        return most;
    };
    const double of_kept = measured.on_host ? with_gaps : 1;
    for (std::size_t u = 0; u < units; ++u) {
        const double output = largest(u, &UnitCost::output_mb);
        problem.activations_mb.push_back(output);
        problem.gradients_mb.push_back(measured.trains_up_to[u] ? output : 0);
        problem.activations_mb_kept.push_back(of_kept * largest(u, &UnitCost::kept_mb));
        problem.workspace_mb.push_back(largest(u, &UnitCost::workspace_mb));
    }
    problem.state_mb = [&](std::size_t begin, std::size_t end, std::size_t device_class) {
        return measured.memory.stage_mb(classes[device_class].front(), {begin, end});
    };
    return problem;
}

}  // namespace hetseq
