#pragma once

#include <cstdint>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "hetseq/model/model.hpp"

namespace hetseq::test {

/// Element i of the array `name`, as tests/reference/formula.py makes it: SplitMix64 (Steele et al.
/// 2014) at position i of the stream that the name's FNV-1a hash starts. fp64 in [-1, 1).
inline at::Tensor formula_uniform(const std::string& name, at::IntArrayRef shape) {
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (const char letter : name)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;
    at::Tensor values = at::empty(shape, at::kDouble);
    auto* out = values.mutable_data_ptr<double>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
        std::uint64_t z = hash + static_cast<std::uint64_t>(i + 1) * 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        z ^= z >> 31;
        out[i] = static_cast<double>(z >> 11) * 0x1p-52 - 1;
    }
    return values;
}

/// Sets the model's stored tensors to the parameters of tests/reference; `norm` is the end of the
/// names of normalisations' weights.
inline void fill_by_formula(Model& model, const std::string& norm = "LayerNorm.weight") {
    const at::NoGradGuard no_grad;
    for (auto& [name, tensor] : model.stored_tensors()) {
        const bool is_norm = name.size() >= norm.size() &&
                             name.compare(name.size() - norm.size(), norm.size(), norm) == 0;
        tensor.copy_(formula_uniform(name, tensor.sizes()) * 0.1 + (is_norm ? 1.0 : 0.0));
    }
}

}  // namespace hetseq::test
