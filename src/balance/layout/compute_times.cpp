#include "compute_times.hpp"

#include <algorithm>

#include "balance/pipeline/message_times.hpp"

namespace hetseq {

namespace {

constexpr double shortest_ms = 1e-9;

}  // namespace

double stage_ms(const LayoutProblem& problem, std::size_t size, const ChainStage& stage) {
    const ChainProblem& chain = problem.sizes[size].chain;
    const ChainDevices& devices = chain.devices[stage.device_class];
    double ms = forward_messages_ms(chain, stage) + backward_messages_ms(chain, stage);
    for (std::size_t unit = stage.begin; unit < stage.end; ++unit)
        ms += devices.forward_ms[unit] + devices.backward_ms[unit];
    return ms;
}

double chain_ms(const LayoutProblem& problem, int rank) {
    const std::size_t device_class = problem.class_of[static_cast<std::size_t>(rank)];
    return std::max(shortest_ms, stage_ms(problem, 0, {device_class, 0, problem.units()}));
}

double most_speed(const LayoutProblem& problem,
                  std::size_t size,
                  std::span<const ChainStage> stages) {
    double most = 0;
    for (std::size_t i = size; i < problem.sizes.size(); ++i) {
        double slowest_ms = shortest_ms;
        for (const ChainStage& stage : stages)
            slowest_ms = std::max(slowest_ms, stage_ms(problem, i, stage));
        most = std::max(most, static_cast<double>(problem.sizes[i].micro_batch) / slowest_ms);
    }
    return most;
}

}  // namespace hetseq
