// What takes tensors to kernels.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "hetseq/util/error.hpp"

#include "fused_launch.hpp"

namespace hetseq::detail {

#define HETSEQ_DISPATCH(type, name, ...) \
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, name, __VA_ARGS__)

/// The type that is computed in where values are of `type`.
inline at::ScalarType computed_type(at::ScalarType type) {
    return type == at::kDouble ? at::kDouble : at::kFloat;
}

inline cudaStream_t current_stream() {
    return c10::cuda::getCurrentCUDAStream().stream();
}

template <class T>
const T* data_or_null(const at::Tensor& tensor) {
    HETSEQ_ASSERT(!tensor.defined() || tensor.is_contiguous());
    return tensor.defined() ? tensor.const_data_ptr<T>() : nullptr;
}
template <class T>
T* mutable_data_or_null(const at::Tensor& tensor) {
    return tensor.defined() ? tensor.mutable_data_ptr<T>() : nullptr;
}

}  // namespace hetseq::detail
