#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>

#include "hetseq/model/tensor_registry.hpp"

namespace hetseq::test {

/// y = x W^T + b, as torch::nn::Linear, whose header takes each unit seconds to compile. The
/// values are those of a model's initialisation.
struct LinearLayer : TensorRegistry {
    LinearLayer(std::int64_t inputs, std::int64_t outputs)
        : weight{register_parameter("weight", at::empty({outputs, inputs}))},
          bias{register_parameter("bias", at::empty({outputs}))} {}

    /// (..., inputs) to (..., outputs)
    at::Tensor forward(const at::Tensor& x) const { return at::linear(x, weight, bias); }

    at::Tensor weight, bias;
};

}  // namespace hetseq::test
