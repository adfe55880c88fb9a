#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_batch_norm_impl_index.h>
#include <ATen/ops/_batch_norm_impl_index_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "hetseq/util/error.hpp"

// Batch normalisation of groups of rows, each by its own statistics, as PyTorch's module would give
// for a batch of that group: python/hetseq/group_norms.py.

namespace hetseq {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<at::Tensor>;

/// What LibTorch wants for the backward of a group.
struct SavedGroup {
    at::Tensor mean;
    at::Tensor inverse;  // of the standard deviation
    at::Tensor reserve;  // of cuDNN
};

/// `out`: as x. `statistics` (groups, 2, channels): means and unbiased variances. `backend`: which
/// of LibTorch's.
struct GroupsNormalised {
    at::Tensor out;
    at::Tensor statistics;
    std::vector<SavedGroup> saved;
    std::int64_t backend = 0;
};

/// That of what LibTorch's own gives.
at::MemoryFormat format_of(const at::Tensor& x) {
    return x.is_contiguous() ? at::MemoryFormat::Contiguous : x.suggest_memory_format();
}

/// Zeros (groups, 2, channels), each row of channels aligned for cuDNN.
at::Tensor new_statistics(const at::Tensor& x, std::int64_t groups) {
    constexpr std::int64_t line = 16;
    const at::ScalarType type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const std::int64_t padded = (x.size(1) + line - 1) / line * line;
    return at::zeros({groups, 2, padded}, x.options().dtype(type)).narrow(2, 0, x.size(1));
}

/// Calls `use` with the number of each group and its first row.
template <class Use>
void for_each_group(at::IntArrayRef sizes, Use use) {
    std::int64_t begin = 0;
    for (std::size_t group = 0; group < sizes.size(); ++group) {
        use(group, begin);
        begin += sizes[group];
    }
}

GroupsNormalised normalise(const at::Tensor& x,
                           const OptionalTensor& weight,
                           const OptionalTensor& bias,
                           at::IntArrayRef sizes,
                           double eps,
                           bool uses_cudnn) {
    GroupsNormalised made;
    made.statistics = new_statistics(x, static_cast<std::int64_t>(sizes.size()));
    if (sizes.size() > 1)
        made.out = at::empty_like(x, x.options(), format_of(x));
    for_each_group(sizes, [&](std::size_t group, std::int64_t begin) {
        const at::Tensor own = made.statistics.select(0, static_cast<std::int64_t>(group));
        // With momentum 1 the running statistics become those of the group.
        constexpr double momentum = 1.0;
        SavedGroup& saved = made.saved.emplace_back();
        at::Tensor out;
        std::tie(out, saved.mean, saved.inverse, saved.reserve, made.backend) =
            at::_batch_norm_impl_index(x.narrow(0, begin, sizes[group]),
                                       weight,
                                       bias,
                                       own.select(0, 0),
                                       own.select(0, 1),
                                       true,
                                       momentum,
                                       eps,
                                       uses_cudnn);
        if (sizes.size() == 1)
            made.out = std::move(out);
        else
            made.out.narrow(0, begin, sizes[group]).copy_(out);
    });
    return made;
}

/// Of x, weight and bias, where `needs` says so.
std::array<at::Tensor, 3> gradients(const at::Tensor& gradient,
                                    const at::Tensor& x,
                                    const OptionalTensor& weight,
                                    at::IntArrayRef sizes,
                                    const std::vector<SavedGroup>& saved,
                                    std::int64_t backend,
                                    double eps,
                                    std::array<bool, 3> needs) {
    std::array<at::Tensor, 3> sums;
    if (needs[0] && sizes.size() > 1)
        sums[0] = at::empty_like(x, x.options(), format_of(x));
    for_each_group(sizes, [&](std::size_t group, std::int64_t begin) {
        auto [of_x, of_weight, of_bias] =
            at::_batch_norm_impl_index_backward(backend,
                                                x.narrow(0, begin, sizes[group]),
                                                gradient.narrow(0, begin, sizes[group]),
                                                weight,
                                                {},
                                                {},
                                                saved[group].mean,
                                                saved[group].inverse,
                                                true,
                                                eps,
                                                needs,
                                                saved[group].reserve);
        if (sizes.size() == 1) {
            sums = {of_x, of_weight, of_bias};
            return;
        }
        if (needs[0])
            sums[0].narrow(0, begin, sizes[group]).copy_(of_x);
        if (needs[1])
            sums[1] = sums[1].defined() ? sums[1] + of_weight : of_weight;
        if (needs[2])
            sums[2] = sums[2].defined() ? sums[2] + of_bias : of_bias;
    });
    for (std::size_t i = 0; i < sums.size(); ++i)
        if (!needs[i])
            sums[i].reset();
    return sums;
}

OptionalTensor optional(const at::Tensor& tensor) {
    return tensor.defined() ? OptionalTensor{tensor} : std::nullopt;
}

struct GroupNorm : torch::autograd::Function<GroupNorm> {
    static variable_list forward(AutogradContext* context,
                                 const at::Tensor& x,
                                 const OptionalTensor& weight,
                                 const OptionalTensor& bias,
                                 const std::vector<std::int64_t>& sizes,
                                 double eps) {
        GroupsNormalised made =
            normalise(x, weight, bias, sizes, eps, at::globalContext().userEnabledCuDNN());
        variable_list kept{x, weight.value_or(at::Tensor{})};
        for (SavedGroup& group : made.saved)
            kept.insert(kept.end(), {group.mean, group.inverse, group.reserve});
        context->save_for_backward(std::move(kept));
        context->saved_data["sizes"] = sizes;
        context->saved_data["eps"] = eps;
        context->saved_data["backend"] = made.backend;
        context->saved_data["has_bias"] = bias.has_value() && bias->defined();
        context->mark_non_differentiable({made.statistics});
        return {made.out, made.statistics};
    }

    static variable_list backward(AutogradContext* context, const variable_list& of_outputs) {
        const variable_list kept = context->get_saved_variables();
        std::vector<SavedGroup> saved;
        for (std::size_t i = 2; i < kept.size(); i += 3)
            saved.push_back({kept[i], kept[i + 1], kept[i + 2]});
        // Tensors that are not there have no edge.
        const bool has_weight = kept[1].defined();
        const bool has_bias = context->saved_data["has_bias"].toBool();
        const auto [of_x, of_weight, of_bias] =
            gradients(of_outputs[0],
                      kept[0],
                      optional(kept[1]),
                      context->saved_data["sizes"].toIntVector(),
                      saved,
                      context->saved_data["backend"].toInt(),
                      context->saved_data["eps"].toDouble(),
                      {context->needs_input_grad(0),
                       has_weight && context->needs_input_grad(1),
                       has_bias && context->needs_input_grad(has_weight ? 2 : 1)});
        return {of_x, of_weight, of_bias, {}, {}};
    }
};

std::tuple<at::Tensor, at::Tensor> group_norm(const at::Tensor& x,
                                              const OptionalTensor& weight,
                                              const OptionalTensor& bias,
                                              at::IntArrayRef sizes,
                                              double eps) {
    variable_list made = GroupNorm::apply(x, weight, bias, sizes.vec(), eps);
    return {std::move(made[0]), std::move(made[1])};
}

/// For compiled code, which keeps tensors of a known shape: `saved` (2, groups, channels), means
/// and inverses of standard deviations.
std::tuple<at::Tensor, at::Tensor, at::Tensor> group_norm_forward(const at::Tensor& x,
                                                                  const OptionalTensor& weight,
                                                                  const OptionalTensor& bias,
                                                                  at::IntArrayRef sizes,
                                                                  double eps) {
    GroupsNormalised made = normalise(x, weight, bias, sizes, eps, false);
    std::vector<at::Tensor> means;
    std::vector<at::Tensor> inverses;
    for (SavedGroup& group : made.saved) {
        means.push_back(std::move(group.mean));
        inverses.push_back(std::move(group.inverse));
    }
    return {made.out, made.statistics, at::stack({at::stack(means), at::stack(inverses)})};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> group_norm_backward(const at::Tensor& gradient,
                                                                   const at::Tensor& x,
                                                                   const OptionalTensor& weight,
                                                                   at::IntArrayRef sizes,
                                                                   const at::Tensor& saved,
                                                                   double eps) {
    HETSEQ_ASSERT(saved.size(1) == static_cast<std::int64_t>(sizes.size()));
    std::vector<SavedGroup> groups;
    for (std::int64_t i = 0; i < saved.size(1); ++i)
        groups.push_back({saved.select(0, 0).select(0, i), saved.select(0, 1).select(0, i), {}});
    constexpr std::int64_t without_cudnn = 0;
    const auto [of_x, of_weight, of_bias] =
        gradients(gradient, x, weight, sizes, groups, without_cudnn, eps, {true, true, true});
    return {of_x, of_weight, of_bias};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(hetseq, m) {
    // x (rows, channels, ...) by groups of `sizes` rows of dimension 0. Gives what x became, and
    // the means and unbiased variances (groups, 2, channels).
    m.def(
        "group_norm(Tensor x, Tensor? weight, Tensor? bias, int[] sizes, float eps) -> "
        "(Tensor, Tensor)",
        group_norm);
    m.def(
        "group_norm_forward(Tensor x, Tensor? weight, Tensor? bias, int[] sizes, float eps) -> "
        "(Tensor, Tensor, Tensor)",
        group_norm_forward);
    m.def(
        "group_norm_backward(Tensor gradient, Tensor x, Tensor? weight, int[] sizes, "
        "Tensor saved, float eps) -> (Tensor, Tensor, Tensor)",
        group_norm_backward);
}

}  // namespace hetseq
