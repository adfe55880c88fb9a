#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include "hetseq/optim/optimizer.hpp"

namespace hetseq::detail {

/// What the optimizers have in common that count their steps and may be gated.
class GatedOptimizer : public Optimizer {
public:
    bool use_gate(const at::Tensor& closed) final {
        closed_ = closed;
        return true;
    }
    void take_back() final { --count(); }
    bool follows_shards() const final { return true; }

protected:
    /// One more step; returns how many these are.
    std::int64_t count_step() { return ++count(); }
    const at::Tensor& steps() const noexcept { return steps_; }    // "step" of the state
    const at::Tensor& closed() const noexcept { return closed_; }  // undefined: no gate
    /// As LibTorch's fused kernels take it.
    std::optional<at::Tensor> found_inf() const {
        return closed_.defined() ? std::optional{closed_} : std::nullopt;
    }

private:
    std::int64_t& count() { return *steps_.mutable_data_ptr<std::int64_t>(); }

    at::Tensor steps_ = at::zeros({}, at::kLong);
    at::Tensor closed_;
};

}  // namespace hetseq::detail
