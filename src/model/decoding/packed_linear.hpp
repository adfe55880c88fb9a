#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "aligned_array.hpp"
#include "model/kernels/matrix_loops.hpp"

namespace hetseq::detail {

/// A linear layer on the CPU, its weight laid out for `multiply`.
template <class T>
class PackedLinear {
public:
    PackedLinear() = default;
    /// `weight` (outputs, inputs), `bias` (outputs) or undefined; any type and device.
    PackedLinear(const at::Tensor& weight, const at::Tensor& bias);

    std::int64_t inputs() const { return inputs_; }
    std::int64_t outputs() const { return outputs_; }
    std::int64_t panels() const { return panels_; }

    /// out (rows, outputs) = in (rows, inputs) * weight^T + bias. A row of `in` and of `out` takes
    /// whole groups.
    void apply(const T* in, std::int64_t rows, T* out, bool relu = false) const;
    /// The outputs of the panels `first` to `last` (excluded). Rows of `out` are `out_stride`
    /// apart.
    void apply_panels(const T* in,
                      std::int64_t rows,
                      std::int64_t first,
                      std::int64_t last,
                      T* out,
                      std::int64_t out_stride,
                      bool relu = false) const;

private:
    std::int64_t inputs_ = 0, outputs_ = 0, panels_ = 0;
    AlignedArray<T> weight_;  // (panels, inputs, panel_width)
    AlignedArray<T> bias_;    // (panels * panel_width)
};

}  // namespace hetseq::detail
