#include "smoothed_cross_entropy.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "hetseq/model/autocast.hpp"

#include "kernels/softmax_loops.hpp"

namespace hetseq::detail {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t logits_bytes = std::int64_t{8} << 20;
constexpr std::int64_t least_rows = 64;

std::int64_t rows_at_once(const at::Tensor& table) {
    const std::int64_t row_bytes = table.size(0) * static_cast<std::int64_t>(table.element_size());
    return std::max(least_rows, logits_bytes / row_bytes);
}

struct Sums {
    double loss = 0, nll = 0, correct = 0;
};

// Row by row. Where `has_gradient`, logits become the loss's gradient.
template <class T>
Sums reduce_rows(T* logits,
                 const std::int64_t* labels,
                 std::int64_t rows,
                 std::int64_t classes,
                 double smoothing,
                 bool has_gradient) {
    std::vector<Sums> sums(static_cast<std::size_t>(rows));
    at::parallel_for(0, rows, 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
            T* const values = logits + row * classes;
            const std::int64_t label = labels[row];
            const RowSums of_row = row_sums(values, classes);
            const double nll = of_row.log_sum_exp - static_cast<double>(values[label]);
            const double mean = of_row.log_sum_exp - of_row.sum / static_cast<double>(classes);
            sums[static_cast<std::size_t>(row)] = {
                (1 - smoothing) * nll + smoothing * mean, nll, of_row.largest == label ? 1.0 : 0.0};
            if (!has_gradient)
                continue;
            softmax_minus(
                values, classes, of_row.log_sum_exp, smoothing / static_cast<double>(classes));
            values[label] -= static_cast<T>(1 - smoothing);
        }
    });
    Sums total;
    for (const Sums& row : sums) {
        total.loss += row.loss;
        total.nll += row.nll;
        total.correct += row.correct;
    }
    return total;
}

at::Tensor reduce(at::Tensor& logits,
                  const at::Tensor& labels,
                  double smoothing,
                  bool has_gradient) {
    const at::ScalarType type = logits.scalar_type();
    if (!logits.is_cpu() || (type != at::kFloat && type != at::kDouble))
        return reduce_logits_anywhere(logits, labels, smoothing, has_gradient);
    Sums sums;
    AT_DISPATCH_FLOATING_TYPES(type, "smoothed_cross_entropy", [&] {
        sums = reduce_rows(logits.mutable_data_ptr<scalar_t>(),
                           labels.const_data_ptr<std::int64_t>(),
                           logits.size(0),
                           logits.size(1),
                           smoothing,
                           has_gradient);
    });
    return at::tensor({sums.loss, sums.nll, sums.correct}, at::kDouble);
}

struct Computed {
    at::Tensor sums;                        // (3) fp64
    at::Tensor x_gradient, table_gradient;  // undefined where none is needed
};

Computed compute(const at::Tensor& x,
                 const at::Tensor& table,
                 const at::Tensor& labels,
                 double smoothing,
                 bool has_gradient) {
    RECORD_FUNCTION("hetseq::smoothed_cross_entropy", std::vector<c10::IValue>({x, table}));
    Computed result{at::zeros({3}, x.options().dtype(at::kDouble)), {}, {}};
    if (has_gradient) {
        result.x_gradient = at::empty_like(x);
        result.table_gradient = at::zeros_like(table);
    }
    const at::Tensor factors = narrowed(x);
    const at::Tensor own_table = narrow_parameter(table);
    const bool is_narrow = !factors.is_same(x);
    const std::int64_t most = rows_at_once(own_table), rows = x.size(0);
    at::Tensor buffer = at::empty({std::min(most, rows), table.size(0)}, factors.options());
    for (std::int64_t begin = 0; begin < rows; begin += most) {
        const std::int64_t count = std::min(most, rows - begin);
        const at::Tensor part = factors.narrow(0, begin, count);
        at::Tensor logits = buffer.narrow(0, 0, count);
        at::mm_out(logits, part, own_table.t());
        result.sums += reduce(logits, labels.narrow(0, begin, count), smoothing, has_gradient);
        if (!has_gradient)
            continue;
        at::Tensor out = result.x_gradient.narrow(0, begin, count);
        if (is_narrow) {
            out.copy_(at::mm(logits, own_table));
            result.table_gradient.add_(at::mm(logits.t(), part));
        } else {
            at::mm_out(out, logits, own_table);
            result.table_gradient.addmm_(logits.t(), part);
        }
    }
    return result;
}

struct SmoothedCrossEntropyFunction : torch::autograd::Function<SmoothedCrossEntropyFunction> {
    static variable_list forward(AutogradContext* context,
                                 const at::Tensor& x,
                                 const at::Tensor& table,
                                 const at::Tensor& labels,
                                 double smoothing) {
        const Computed computed = compute(x, table, labels, smoothing, /*has_gradient=*/true);
        context->save_for_backward({computed.x_gradient, computed.table_gradient});
        const at::Tensor sums = computed.sums;
        return {sums[0].to(x.scalar_type()), sums[1].detach(), sums[2].detach()};
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        return {saved[0] * gradients[0], saved[1] * gradients[0], {}, {}};
    }
};

}  // namespace

at::Tensor reduce_logits_anywhere(at::Tensor& logits,
                                  const at::Tensor& labels,
                                  double smoothing,
                                  bool has_gradient) {
    const at::Tensor columns = labels.unsqueeze(1);
    const at::Tensor wide = at_least_fp32(logits);
    const at::Tensor log_sum_exp = wide.logsumexp(1, /*keepdim=*/true);
    const at::Tensor nll = (log_sum_exp - wide.gather(1, columns)).sum(at::kDouble);
    const at::Tensor mean = (log_sum_exp.squeeze(1) - wide.mean(1)).sum(at::kDouble);
    const at::Tensor correct = wide.argmax(1).eq(labels).sum().to(at::kDouble);
    if (has_gradient) {
        at::Tensor gradient =
            (wide - log_sum_exp).exp_().sub_(smoothing / static_cast<double>(logits.size(1)));
        gradient.scatter_add_(
            1, columns, at::full_like(columns, smoothing - 1, gradient.options()));
        logits = gradient.to(logits.scalar_type());
    }
    return at::stack({nll * (1 - smoothing) + mean * smoothing, nll, correct});
}

SmoothedCrossEntropy smoothed_cross_entropy(const at::Tensor& x,
                                            const at::Tensor& table,
                                            const at::Tensor& labels,
                                            double smoothing,
                                            CountCorrect count_correct) {
    variable_list sums;
    if (at::GradMode::is_enabled() && (x.requires_grad() || table.requires_grad())) {
        sums = SmoothedCrossEntropyFunction::apply(x, table, labels, smoothing);
    } else {
        const at::Tensor computed = compute(x, table, labels, smoothing, false).sums;
        sums = {computed[0].to(x.scalar_type()), computed[1], computed[2]};
    }
    return {sums[0],
            sums[1].detach(),
            count_correct == CountCorrect::yes ? sums[2].detach() : at::Tensor{}};
}

}  // namespace hetseq::detail
