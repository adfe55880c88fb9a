#include "message_times.hpp"

#include <algorithm>
#include <cmath>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

// `mb`: by unit, of a message behind it.
double messages_ms(const ChainProblem& problem,
                   const ChainStage& stage,
                   const std::vector<double>& mb) {
    const double in_front = stage.begin > 0 ? mb[stage.begin - 1] : 0;
    const double behind = stage.end < problem.units() ? mb[stage.end - 1] : 0;
    return rounded_ms((in_front + behind) * problem.devices[stage.device_class].message_ms_per_mb);
}

}  // namespace

double forward_messages_ms(const ChainProblem& problem, const ChainStage& stage) {
    return messages_ms(problem, stage, problem.activations_mb);
}

double backward_messages_ms(const ChainProblem& problem, const ChainStage& stage) {
    return messages_ms(problem, stage, problem.gradients_mb);
}

double rounded_ms(double ms) {
    HETSEQ_ASSERT(ms >= 0 && std::isfinite(ms));
    return std::round(ms * 0x1p20) * 0x1p-20;
}

double message_ms(const ChainLink& link, double mb) {
    return rounded_ms(link.latency_ms + mb * link.ms_per_mb);
}

BoundaryCards cards_of(const PipelineLink& messages) {
    return {.front_out = rounded_ms(messages.front_card * messages.forward_ms),
            .front_in = rounded_ms(messages.front_card * messages.backward_ms),
            .behind_out = rounded_ms(messages.behind_card * messages.backward_ms),
            .behind_in = rounded_ms(messages.behind_card * messages.forward_ms)};
}

double slower_way(const ChainLink& there, const ChainLink& back) {
    return std::max(there.ms_per_mb, back.ms_per_mb);
}

double card_part_of(double own, double fastest) {
    return own > 0 ? std::min(own, fastest) / own : 1;
}

}  // namespace hetseq
