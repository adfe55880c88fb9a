#include "hetseq/model/recomputed.hpp"

#include <algorithm>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "hetseq/model/autocast.hpp"

namespace hetseq {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What autograd keeps of a computation beside its inputs.
struct Kept : torch::CustomClassHolder {
    Kept(Recomputation of, Autocast::State autocast)
        : compute{std::move(of)}, autocast{std::move(autocast)} {}

    Recomputation compute;
    Autocast::State autocast;
};

struct Recomputed : torch::autograd::Function<Recomputed> {
    // `trained`: an empty tensor that has a gradient where a parameter has one. A parameter as an
    // input would tell its hooks twice that its gradient is ready.
    static variable_list forward(AutogradContext* context,
                                 at::TensorList inputs,
                                 const at::Tensor& /*trained*/,
                                 const Recomputation& compute) {
        context->set_materialize_grads(false);
        context->save_for_backward(inputs.vec());
        context->saved_data["kept"] =
            c10::IValue::make_capsule(c10::make_intrusive<Kept>(compute, Autocast::state()));
        return compute(inputs.vec());
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        RECORD_FUNCTION("hetseq::recompute", std::vector<c10::IValue>());
        const auto kept =
            c10::static_intrusive_pointer_cast<Kept>(context->saved_data["kept"].toCapsule());
        variable_list inputs = context->get_saved_variables();
        for (std::size_t i = 0; i < inputs.size(); ++i)
            inputs[i] = inputs[i].detach().set_requires_grad(context->needs_input_grad(i));
        const variable_list outputs = computed_again(*kept, inputs);
        variable_list roots, of_roots;
        for (std::size_t i = 0; i < outputs.size(); ++i)
            if (gradients[i].defined() && outputs[i].requires_grad()) {
                roots.push_back(outputs[i]);
                of_roots.push_back(gradients[i]);
            }
        if (!roots.empty())
            torch::autograd::backward(roots, of_roots);
        variable_list of_inputs;
        for (const at::Tensor& input : inputs)
            of_inputs.push_back(input.grad());
        of_inputs.resize(inputs.size() + 2);
        return of_inputs;
    }

    static variable_list computed_again(const Kept& kept, const variable_list& inputs) {
        const at::AutoGradMode with_graph(true);
        const Autocast autocast{kept.autocast};
        return kept.compute(inputs);
    }
};

}  // namespace

std::vector<at::Tensor> recomputed(const std::vector<at::Tensor>& inputs,
                                   bool trains,
                                   const Recomputation& compute) {
    const bool has_graph =
        trains || std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& input) {
            return input.requires_grad();
        });
    if (!has_graph || !at::GradMode::is_enabled())
        return compute(inputs);
    const at::Tensor trained =
        at::empty({0}, inputs.front().options().dtype(at::kFloat)).set_requires_grad(trains);
    return Recomputed::apply(at::TensorList(inputs), trained, compute);
}

}  // namespace hetseq
