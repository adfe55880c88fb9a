#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

namespace hetseq {

class FlatParameters;

struct OptimizerOptions {
    std::string name = "adam";  // adam, adamw, adadelta, sgd
    double weight_decay = 0;
    double beta1 = 0.9, beta2 = 0.999;  // adam, adamw
    double eps = 1e-8;                  // adam, adamw, adadelta
    double rho = 0.9;                   // adadelta
    double momentum = 0;                // sgd
};

/// Updates flat parameters from their summed gradients. All memory is taken by the constructor;
/// `step` takes none.
class Optimizer {
public:
    virtual ~Optimizer() = default;
    virtual void step(FlatParameters& parameters, double lr) = 0;
    /// State by name, flat like the parameters ("exp_avg"), and the count of steps as a scalar: for
    /// checkpoints.
    virtual std::map<std::string, at::Tensor> state() const = 0;
};

/// sqrt of the summed squares of `gradients` in fp64 (a scalar on its device).
at::Tensor gradient_norm(const at::Tensor& gradients);

}  // namespace hetseq
