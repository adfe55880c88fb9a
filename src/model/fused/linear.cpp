#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>

#include "hetseq/model/autocast.hpp"

#include "model/fused_ops.hpp"
#include "model/kernels/fused/fused_kernels.hpp"
#include "token_places.hpp"

namespace hetseq::detail {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The product, in fp32 where the factors have 16 bits: LibTorch gives that without rounding
// since 2.8.
at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b) {
    if (a.element_size() > 2)
        return at::mm(a, b);
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 8
    return at::mm(a, b, at::kFloat);
#else
    return at::mm(a, b).to(at::kFloat);
#endif
}

// Those of x and weight, the first two inputs, which were saved first. `gradient`: of the product.
variable_list product_gradients(AutogradContext& context,
                                const variable_list& saved,
                                const at::Tensor& gradient) {
    variable_list result(2);
    if (context.needs_input_grad(0))
        result[0] = at::mm(gradient, saved[1]);
    if (context.needs_input_grad(1))
        result[1] = wide_product(gradient.t(), saved[0]);
    return result;
}

struct NarrowLinear : torch::autograd::Function<NarrowLinear> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& x,
                              const at::Tensor& weight,
                              const std::optional<at::Tensor>& bias) {
        const at::Tensor factors = narrow_parameter(weight);
        context->save_for_backward({x, factors});
        context->saved_data["has_bias"] = bias.has_value();
        return bias ? at::addmm(narrow_parameter(*bias), x, factors.t()) : at::mm(x, factors.t());
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const at::Tensor gradient = gradients[0].contiguous();
        variable_list result =
            product_gradients(*context, context->get_saved_variables(), gradient);
        const bool has_bias = context->saved_data["has_bias"].toBool();
        result.push_back(has_bias && context->needs_input_grad(2)
                             ? gradient.sum({0}, false, at::kFloat)
                             : at::Tensor{});
        return result;
    }
};

struct LinearActivation : torch::autograd::Function<LinearActivation> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& x,
                              const at::Tensor& weight,
                              const at::Tensor& bias,
                              Activation activation) {
        const at::Tensor factors = narrow_parameter(weight);
        const at::Tensor product = at::mm(x, factors.t());
        at::Tensor out = bias_activation_cuda(product, bias, activation);
        context->save_for_backward({x, factors, bias, is_kept_output(activation) ? out : product});
        context->saved_data["activation"] = static_cast<std::int64_t>(activation);
        return out;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const BiasActivationGradients of = bias_activation_backward_cuda(
            saved[3],
            saved[2],
            gradients[0].contiguous(),
            static_cast<Activation>(context->saved_data["activation"].toInt()));
        variable_list result = product_gradients(*context, saved, of.product);
        result.insert(result.end(), {of.bias, at::Tensor{}});
        return result;
    }
};

// `product` of the rows of x, in the shape of x.
template <class Product>
at::Tensor of_rows(const at::Tensor& x, const Product& product) {
    const at::Tensor result = product(x.flatten(0, -2).contiguous());
    std::vector<std::int64_t> sizes = x.sizes().vec();
    sizes.back() = result.size(1);
    return result.view(sizes);
}

}  // namespace

at::Tensor narrow_linear(const at::Tensor& x, const Affine& affine) {
    return of_rows(x, [&](const at::Tensor& rows) {
        return NarrowLinear::apply(rows, affine.weight, if_defined(affine.bias));
    });
}

at::Tensor fused_linear_activation(const at::Tensor& x,
                                   const Affine& affine,
                                   Activation activation) {
    return of_rows(x, [&](const at::Tensor& rows) {
        return LinearActivation::apply(rows, affine.weight, affine.bias, activation);
    });
}

}  // namespace hetseq::detail
