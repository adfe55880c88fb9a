#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/kernels/fused/fused_kernels.hpp"
#include "model/saved_dropout.hpp"
#include "model/transformer_ops.hpp"

namespace hetseq::detail {

/// `tensor`, as a Function takes one that may be undefined.
inline std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
    return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

inline const std::int64_t* numbers_or_null(const at::Tensor& tensor) {
    return tensor.defined() ? tensor.const_data_ptr<std::int64_t>() : nullptr;
}

/// The mask of `dropout` in `places` of a kernel.
template <class Places>
void set_mask(Places& places, const Dropout& dropout) {
    if (dropout.p == 0)
        return;
    places.mask = make_dropout_mask(dropout.p, dropout.key);
    places.keep_scale = places.mask.scale();
    places.sample_ids = numbers_or_null(dropout.sample_ids);
}

/// What `save_dropout` kept, with its tensors.
inline Dropout saved_dropout(torch::autograd::AutogradContext& context,
                             at::Tensor sample_ids,
                             at::Tensor positions) {
    const SavedDropout saved = saved_dropout(context);
    return {saved.p, saved.key, std::move(sample_ids), std::move(positions)};
}

/// Rows (rows, columns) under `dropout`; `eps` is that of a normalisation.
TokenPlaces token_places(at::IntArrayRef sizes, const Dropout& dropout, double eps = 0);

/// Another tensor with the memory of `x`, as a second output of a Function.
at::Tensor same_memory(const at::Tensor& x);

/// `gradients[i]`, contiguous; undefined where it is not there.
at::Tensor gradient_or_none(const torch::autograd::variable_list& gradients, std::size_t i);

}  // namespace hetseq::detail
