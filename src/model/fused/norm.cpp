#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/fused_ops.hpp"
#include "model/kernels/fused/fused_kernels.hpp"
#include "token_places.hpp"

namespace hetseq::detail {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Wide and narrow, or both of one memory.
variable_list outputs_of(const ResidualNormed& result) {
    return {result.wide, result.narrow.defined() ? result.narrow : same_memory(result.wide)};
}

struct FusedNorm : torch::autograd::Function<FusedNorm> {
    static variable_list forward(AutogradContext* context,
                                 const at::Tensor& x,
                                 const std::optional<at::Tensor>& x_bias,
                                 const std::optional<at::Tensor>& residual,
                                 const at::Tensor& weight,
                                 const at::Tensor& bias,
                                 double eps,
                                 const Dropout& dropout) {
        RECORD_FUNCTION("hetseq::residual_norm", std::vector<c10::IValue>({x}));
        context->set_materialize_grads(false);
        const ResidualNormed result =
            residual_norm_cuda(x,
                               residual.value_or(at::Tensor{}),
                               {weight, bias, x_bias.value_or(at::Tensor{})},
                               x.scalar_type(),
                               token_places(x.sizes(), dropout, eps));
        context->save_for_backward({result.sums,
                                    result.means,
                                    result.inverse_deviations,
                                    weight,
                                    bias,
                                    x_bias.value_or(at::Tensor{}),
                                    dropout.sample_ids,
                                    dropout.positions});
        save_dropout(*context, dropout.p, dropout.key);
        context->saved_data["eps"] = eps;
        context->saved_data["has_residual"] = residual.has_value();
        context->saved_data["type"] = static_cast<std::int64_t>(x.scalar_type());
        return outputs_of(result);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const at::Tensor of_wide = gradient_or_none(gradients, 0),
                         of_narrow = gradient_or_none(gradients, 1);
        if (!of_wide.defined() && !of_narrow.defined())
            return variable_list(7);
        const variable_list saved = context->get_saved_variables();
        const ResidualNormGradients result = residual_norm_backward_cuda(
            {{}, {}, saved[0], saved[1], saved[2]},
            of_wide,
            of_narrow,
            {saved[3], saved[4], saved[5]},
            {.has_residual = context->saved_data["has_residual"].toBool()},
            static_cast<at::ScalarType>(context->saved_data["type"].toInt()),
            token_places(saved[0].sizes(),
                         saved_dropout(*context, saved[6], saved[7]),
                         context->saved_data["eps"].toDouble()));
        const NormTensors& of = result.parameters;
        return {result.x, of.x_bias, result.residual, of.weight, of.bias, {}, {}};
    }
};

struct NormThenDropout : torch::autograd::Function<NormThenDropout> {
    static variable_list forward(AutogradContext* context,
                                 const at::Tensor& x,
                                 const at::Tensor& weight,
                                 const at::Tensor& bias,
                                 double eps,
                                 const Dropout& dropout,
                                 const at::ScalarType type) {
        RECORD_FUNCTION("hetseq::norm_dropout", std::vector<c10::IValue>({x}));
        context->set_materialize_grads(false);
        TokenPlaces places = token_places(x.sizes(), dropout, eps);
        places.drops_output = true;
        const ResidualNormed result = residual_norm_cuda({}, x, {weight, bias, {}}, type, places);
        context->save_for_backward({result.sums,
                                    result.means,
                                    result.inverse_deviations,
                                    weight,
                                    bias,
                                    dropout.sample_ids,
                                    dropout.positions});
        save_dropout(*context, dropout.p, dropout.key);
        context->saved_data["type"] = static_cast<std::int64_t>(type);
        return outputs_of(result);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const at::Tensor of_wide = gradient_or_none(gradients, 0),
                         of_narrow = gradient_or_none(gradients, 1);
        if (!of_wide.defined() && !of_narrow.defined())
            return variable_list(6);
        const variable_list saved = context->get_saved_variables();
        const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
        const at::IntArrayRef sizes = saved[0].sizes();
        const Dropout dropout = saved_dropout(*context, saved[5], saved[6]);
        const ResidualNormGradients result = residual_norm_backward_cuda(
            {{}, {}, saved[0], saved[1], saved[2]},
            outputs_backward_cuda(of_wide, of_narrow, 1, type, token_places(sizes, dropout)),
            {},
            {saved[3], saved[4], {}},
            {.has_x = false},
            type,
            token_places(sizes, {}));
        const NormTensors& of = result.parameters;
        return {result.residual, of.weight, of.bias, {}, {}, {}};
    }
};

}  // namespace

Rows fused_norm_dropout(const at::Tensor& x,
                        const Affine& norm,
                        double eps,
                        const Dropout& dropout,
                        at::ScalarType type) {
    const variable_list result =
        NormThenDropout::apply(x.contiguous(), norm.weight, norm.bias, eps, dropout, type);
    return {result.front(), result.back()};
}

Rows fused_dropout_add_norm(const at::Tensor& x,
                            const at::Tensor& x_bias,
                            const at::Tensor& residual,
                            const Affine& norm,
                            double eps,
                            const Dropout& dropout) {
    const auto flat = [](const at::Tensor& y) {
        return y.defined() ? y.flatten(0, -2).contiguous() : y;
    };
    const variable_list result = FusedNorm::apply(flat(x),
                                                  if_defined(x_bias),
                                                  if_defined(flat(residual)),
                                                  norm.weight,
                                                  norm.bias,
                                                  eps,
                                                  dropout);
    return {result.front().view(x.sizes()), result.back().view(x.sizes())};
}

}  // namespace hetseq::detail
