#pragma once

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>

#include "hetseq/model/tensor_registry.hpp"

namespace hetseq::test {

/// Parameters of awkward sizes: a tied one, one that no forward uses, one used on request.
struct ToyModule : TensorRegistry {
    explicit ToyModule(at::ScalarType type = at::kDouble) {
        const auto options = at::TensorOptions().dtype(type);
        at::manual_seed(3);
        first = register_parameter("first", at::randn({5, 7}, options));
        bias = register_parameter("bias", at::randn({7}, options));
        second = register_parameter("second", at::randn({7, 3}, options));
        register_parameter("tied", first);
        unused = register_parameter("unused", at::randn({3}, options));
        conditional = register_parameter("conditional", at::randn({2, 3}, options));
        register_parameter("frozen", at::randn({4}, options), /*requires_grad=*/false);
    }

    void to(at::Device device) {
        for (at::Tensor parameter : parameters())
            parameter.set_data(parameter.to(device));
    }

    at::Tensor loss(const at::Tensor& x, bool use_conditional) const {
        at::Tensor y = at::tanh(x.mm(first) + bias).mm(second);
        if (use_conditional)
            y = y + conditional.sum(0);
        return y.pow(2).sum() + first.pow(2).sum();
    }

    at::Tensor first, bias, second, unused, conditional;
};

inline bool matrices_decay(const std::string& name) {
    return name != "bias" && name != "unused";
}

}  // namespace hetseq::test
