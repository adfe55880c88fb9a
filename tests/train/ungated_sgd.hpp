#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

namespace hetseq::test {

/// As an optimizer in Python: it cannot be gated, and it reads the gradients of the parameters. It
/// remembers them.
class UngatedSgd final : public Optimizer {
public:
    void step(FlatParameters& parameters, double rate) override {
        const at::NoGradGuard no_grad;
        std::vector<at::Tensor> gradients;
        for (const FlatParameters::Parameter& parameter : parameters.parameters()) {
            gradients.push_back(parameter.tensor.grad().flatten().to(
                at::kCPU, /*non_blocking=*/false, /*copy=*/true));
            at::Tensor values = parameter.tensor;
            values.sub_(values.grad(), rate);
        }
        seen_.push_back(at::cat(gradients));
    }
    std::map<std::string, at::Tensor> state() const override { return {}; }

    /// By step: the gradients on the CPU, without padding.
    const std::vector<at::Tensor>& seen() const noexcept { return seen_; }

private:
    std::vector<at::Tensor> seen_;
};

}  // namespace hetseq::test
