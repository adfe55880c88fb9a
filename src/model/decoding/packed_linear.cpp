#include "packed_linear.hpp"

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

namespace hetseq::detail {

namespace {

// Below this a product is not worth a second thread.
constexpr std::int64_t parallel_products = 1 << 18;

}  // namespace

template <class T>
PackedLinear<T>::PackedLinear(const at::Tensor& weight, const at::Tensor& bias)
    : inputs_{weight.size(1)},
      outputs_{weight.size(0)},
      panels_{(outputs_ + panel_width<T> - 1) / panel_width<T>},
      weight_(panels_ * inputs_ * panel_width<T>),
      bias_(panels_ * panel_width<T>) {
    const auto options = at::device(at::kCPU).dtype(c10::CppTypeToScalarType<T>::value);
    const at::Tensor rows = weight.detach().to(options).contiguous();
    const T* from = rows.const_data_ptr<T>();
    for (std::int64_t row = 0; row < outputs_; ++row) {
        T* to =
            weight_.data() + row / panel_width<T> * panel_width<T> * inputs_ + row % panel_width<T>;
        for (std::int64_t i = 0; i < inputs_; ++i)
            to[i * panel_width<T>] = from[row * inputs_ + i];
    }
    if (bias.defined()) {
        const at::Tensor values = bias.detach().to(options).contiguous();
        std::copy_n(values.const_data_ptr<T>(), outputs_, bias_.data());
    }
}

template <class T>
void PackedLinear<T>::apply(const T* in, std::int64_t rows, T* out, bool relu) const {
    const std::int64_t grain =
        std::max<std::int64_t>(1, parallel_products / (rows * inputs_ * panel_width<T> + 1));
    at::parallel_for(0, panels_, grain, [&](std::int64_t first, std::int64_t last) {
        apply_panels(
            in, rows, first, last, out + first * panel_width<T>, whole_groups<T>(outputs_), relu);
    });
}

template <class T>
void PackedLinear<T>::apply_panels(const T* in,
                                   std::int64_t rows,
                                   std::int64_t first,
                                   std::int64_t last,
                                   T* out,
                                   std::int64_t out_stride,
                                   bool relu) const {
    PanelProduct<T> product;
    product.left = in;
    product.left_stride = whole_groups<T>(inputs_);
    product.rows = rows;
    product.depth = inputs_;
    product.panels = weight_.data() + first * inputs_ * panel_width<T>;
    product.bias = bias_.data() + first * panel_width<T>;
    product.out = out;
    product.out_stride = out_stride;
    product.columns = std::min(last * panel_width<T>, outputs_) - first * panel_width<T>;
    product.relu = relu;
    multiply(product);
}

template class PackedLinear<float>;
template class PackedLinear<double>;

}  // namespace hetseq::detail
