#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "hetseq/model/coordinate_dropout.hpp"

#include "forward_scope.hpp"
#include "keyed_tags.hpp"

// Dropout of a user's module, keyed: see forward_scope.hpp.

namespace hetseq {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor mask(const at::Tensor& x,
                double p,
                const at::Tensor& stream,
                const at::Tensor& key,
                const at::Tensor& ids,
                std::int64_t draw,
                std::string_view what) {
    const DrawPlace place{stream.item<std::int64_t>(), draw};
    const SampleDim in = ForwardScope::instance().samples_in(x.sizes(), ids.numel(), what, place);
    const DrawKey drawn = draw_key(key, place);
    const auto drop = [&](const at::Tensor& samples) {
        return coordinate_dropout(
            samples, p, {drawn.seed, drawn.update, 0}, ids.to(x.device()).contiguous());
    };
    if (in.dim > 0)
        return drop(x.movedim(in.dim, 0)).movedim(0, in.dim).contiguous();
    return in.rows == 1 ? drop(x) : drop(x.unflatten(0, {ids.numel(), in.rows})).flatten(0, 1);
}

at::Tensor mask_meta(const at::Tensor& x,
                     double,
                     const at::Tensor&,
                     const at::Tensor&,
                     const at::Tensor&,
                     std::int64_t,
                     std::string_view) {
    return at::empty_symint(x.sym_sizes(), x.options());
}

at::Tensor call_mask(const at::Tensor& x,
                     double p,
                     const at::Tensor& stream,
                     const at::Tensor& key,
                     const at::Tensor& ids,
                     std::int64_t draw,
                     std::string_view what) {
    static const auto handle =
        c10::Dispatcher::singleton().findSchemaOrThrow("hetseq::mask", "").typed<decltype(mask)>();
    return handle.call(x, p, stream, key, ids, draw, what);
}

/// Linear in x, so backward is the function itself.
struct Mask : torch::autograd::Function<Mask> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& x,
                              double p,
                              const at::Tensor& stream,
                              const at::Tensor& key,
                              const at::Tensor& ids,
                              std::int64_t draw,
                              std::string what) {
        context->save_for_backward({stream, key, ids});
        context->saved_data["p"] = p;
        context->saved_data["draw"] = draw;
        context->saved_data["what"] = what;
        const at::AutoDispatchBelowAutograd below;
        return call_mask(x, p, stream, key, ids, draw, what);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const at::Tensor gradient = call_mask(gradients[0],
                                              context->saved_data["p"].toDouble(),
                                              saved[0],
                                              saved[1],
                                              saved[2],
                                              context->saved_data["draw"].toInt(),
                                              context->saved_data["what"].toStringRef());
        return {gradient, {}, {}, {}, {}, {}, {}};
    }
};

at::Tensor mask_autograd(const at::Tensor& x,
                         double p,
                         const at::Tensor& stream,
                         const at::Tensor& key,
                         const at::Tensor& ids,
                         std::int64_t draw,
                         std::string_view what) {
    return Mask::apply(x, p, stream, key, ids, draw, std::string{what});
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(hetseq, m) {
    const std::vector<at::Tag> tags = keyed_tags<at::Tag>();
    // x (n * rows, ...): dropout with probability p in [0, 1), rows [i * rows, (i + 1) * rows) of
    // sample i, or with the samples in another dimension (ForwardScope::samples_in); kept elements
    // are divided by the keep probability.
    m.def(
        "mask(Tensor x, float p, Tensor stream, Tensor key, Tensor ids, int draw, str what) -> "
        "Tensor",
        tags);
}

TORCH_LIBRARY_IMPL(hetseq, CPU, m) {
    m.impl("mask", mask);
}

TORCH_LIBRARY_IMPL(hetseq, CUDA, m) {
    m.impl("mask", mask);
}

TORCH_LIBRARY_IMPL(hetseq, Meta, m) {
    m.impl("mask", mask_meta);
}

TORCH_LIBRARY_IMPL(hetseq, Autograd, m) {
    m.impl("mask", mask_autograd);
}

}  // namespace hetseq
