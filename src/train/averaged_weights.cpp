#include "hetseq/train/averaged_weights.hpp"

#include <ATen/core/grad_mode.h>

#include "hetseq/util/error.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/value_gather.hpp"

namespace hetseq {

AveragedWeights::AveragedWeights(FlatParameters& parameters,
                                 const Optimizer& optimizer,
                                 ValueGather& gather)
    : parameters_{parameters}, optimizer_{optimizer}, gather_{gather} {}

bool AveragedWeights::exist() const {
    return optimizer_.average().defined();
}

void AveragedWeights::put_in() {
    if (!exist())
        return;
    HETSEQ_ASSERT(!own_.defined());
    const at::NoGradGuard no_grad;
    own_ = parameters_.values().clone();
    fill();
}

void AveragedWeights::take_out() {
    if (!own_.defined())
        return;
    const at::NoGradGuard no_grad;
    parameters_.values().copy_(own_);
    own_.reset();
}

void AveragedWeights::stay() {
    if (exist())
        fill();
}

void AveragedWeights::fill() {
    const at::NoGradGuard no_grad;
    const at::Tensor average = optimizer_.average();
    for (const FlatParameters::Held& held : parameters_.held())
        parameters_.values()
            .narrow(0, held.offset, held.numel)
            .copy_(average.narrow(0, held.state_offset, held.numel));
    gather_.start();
    gather_.wait();
}

}  // namespace hetseq
