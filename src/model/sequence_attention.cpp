#include "sequence_attention.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "hetseq/util/error.hpp"

#include "kernels/attention_loops.hpp"
#include "kernels/dropout_mask.hpp"

namespace hetseq::detail {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Queries, keys and values, each (rows, H) with rows of any distance.
struct Projections {
    at::Tensor query, key, value;
};

Projections split_projections(const at::Tensor& queries, const at::Tensor& keys_values) {
    const bool is_fused = !keys_values.defined();
    const std::int64_t hidden = queries.size(1) / (is_fused ? 3 : 1);
    const at::Tensor& others = is_fused ? queries : keys_values;
    const std::int64_t first = is_fused ? hidden : 0;
    return {queries.narrow(1, 0, hidden),
            others.narrow(1, first, hidden),
            others.narrow(1, first + hidden, hidden)};
}

/// The sequences of a call, and where their probabilities lie.
struct Sequences {
    std::vector<std::int64_t> keys, queries;  // as in AttentionSpans
    std::int64_t heads = 1, width = 1;

    std::int64_t count() const { return std::ssize(keys) - 1; }
    std::int64_t first(const std::vector<std::int64_t>& of, std::int64_t s) const {
        return of[static_cast<std::size_t>(s)];
    }
    std::int64_t size(const std::vector<std::int64_t>& of, std::int64_t s) const {
        return first(of, s + 1) - first(of, s);
    }
    std::int64_t scores(std::int64_t s) const { return heads * size(queries, s) * size(keys, s); }
    std::int64_t most_scores() const {
        std::int64_t most = 0;
        for (std::int64_t s = 0; s < count(); ++s)
            most = std::max(most, scores(s));
        return most;
    }
    std::int64_t all_scores() const {
        std::int64_t all = 0;
        for (std::int64_t s = 0; s < count(); ++s)
            all += scores(s);
        return all;
    }
    double factor() const { return 1 / std::sqrt(static_cast<double>(width)); }

    /// The rows of sequence s of `x` (rows, H), (heads, rows, width).
    at::Tensor part(const at::Tensor& x,
                    const std::vector<std::int64_t>& of,
                    std::int64_t s) const {
        return x.as_strided({heads, size(of, s), width},
                            {width, x.stride(0), 1},
                            x.storage_offset() + first(of, s) * x.stride(0));
    }
    at::Tensor matrix(const at::Tensor& values, std::int64_t begin, std::int64_t s) const {
        return values.narrow(0, begin, scores(s)).view({heads, size(queries, s), size(keys, s)});
    }
};

struct ChunkNumbers {
    DropoutMask mask;
    const std::int64_t* sample_ids = nullptr;
    const std::int64_t* positions = nullptr;  // of all queries; null: 0, 1, ...
    std::int64_t most_rows = 0;
    std::int64_t row_chunks = 0;
};

std::vector<std::uint32_t> first_chunks(const ChunkNumbers& numbers,
                                        const Sequences& sequences,
                                        std::int64_t s) {
    const std::int64_t queries = sequences.size(sequences.queries, s);
    std::vector<std::uint32_t> chunks;
    chunks.reserve(static_cast<std::size_t>(sequences.heads * queries));
    for (std::int64_t head = 0; head < sequences.heads; ++head)
        for (std::int64_t i = 0; i < queries; ++i) {
            const std::int64_t position =
                numbers.positions == nullptr
                    ? i
                    : numbers.positions[sequences.first(sequences.queries, s) + i];
            chunks.push_back(static_cast<std::uint32_t>((head * numbers.most_rows + position) *
                                                        numbers.row_chunks));
        }
    return chunks;
}

template <class T>
AttentionRows<T> part_of(const AttentionRows<T>& rows, std::int64_t begin, std::int64_t end) {
    AttentionRows<T> part = rows;
    part.rows = end - begin;
    part.scores += begin * rows.columns;
    if (part.kept != nullptr)
        part.kept += begin * rows.columns;
    return part;
}

AttentionDropout part_of(AttentionDropout dropout, std::int64_t begin) {
    if (dropout.first_chunks != nullptr)
        dropout.first_chunks += begin;
    return dropout;
}

constexpr std::int64_t rows_of_task = 16;

// `scores` (heads, queries, keys) in place, `kept` beside it.
void softmax_of(const at::Tensor& scores,
                const at::Tensor& kept,
                double factor,
                const AttentionDropout& dropout) {
    AT_DISPATCH_FLOATING_TYPES(scores.scalar_type(), "attention_softmax", [&] {
        const AttentionRows<scalar_t> rows{scores.size(0) * scores.size(1),
                                           scores.size(2),
                                           scores.mutable_data_ptr<scalar_t>(),
                                           kept.mutable_data_ptr<scalar_t>(),
                                           factor};
        at::parallel_for(0, rows.rows, rows_of_task, [&](std::int64_t begin, std::int64_t end) {
            attention_softmax(part_of(rows, begin, end), part_of(dropout, begin));
        });
    });
}

void softmax_backward_of(const at::Tensor& scores,
                         const at::Tensor& kept,
                         const at::Tensor& gradients,
                         double factor,
                         double scale) {
    AT_DISPATCH_FLOATING_TYPES(scores.scalar_type(), "attention_softmax_backward", [&] {
        const AttentionRows<scalar_t> rows{
            scores.size(0) * scores.size(1),
            scores.size(2),
            scores.mutable_data_ptr<scalar_t>(),
            kept.defined() ? kept.mutable_data_ptr<scalar_t>() : nullptr,
            factor};
        auto* const of_rows = gradients.mutable_data_ptr<scalar_t>();
        at::parallel_for(0, rows.rows, rows_of_task, [&](std::int64_t begin, std::int64_t end) {
            attention_softmax_backward(
                part_of(rows, begin, end), scale, of_rows + begin * rows.columns);
        });
    });
}

struct Attended {
    at::Tensor out;     // (R, H)
    at::Tensor scores;  // of all sequences end to end, as `attention_softmax` leaves them;
                        // undefined unless they are kept for backward
};

Attended attend_to_sequences(const Projections& x,
                             const Sequences& sequences,
                             const std::optional<ChunkNumbers>& dropout,
                             bool keep_scores) {
    RECORD_FUNCTION("hetseq::attention", std::vector<c10::IValue>({x.query, x.key, x.value}));
    const at::TensorOptions options = x.query.options();
    Attended result;
    result.out = at::empty(x.query.sizes(), options);
    const at::Tensor scores =
        at::empty({keep_scores ? sequences.all_scores() : sequences.most_scores()}, options);
    const at::Tensor kept = dropout ? at::empty({sequences.most_scores()}, options) : scores;
    std::int64_t begin = 0;
    for (std::int64_t s = 0; s < sequences.count(); ++s) {
        if (sequences.scores(s) == 0)
            continue;
        at::Tensor of_sequence = sequences.matrix(scores, begin, s);
        const at::Tensor after = dropout ? sequences.matrix(kept, 0, s) : of_sequence;
        at::bmm_out(of_sequence,
                    sequences.part(x.query, sequences.queries, s),
                    sequences.part(x.key, sequences.keys, s).transpose(1, 2));
        std::vector<std::uint32_t> chunks;
        AttentionDropout of_rows;
        if (dropout) {
            chunks = first_chunks(*dropout, sequences, s);
            of_rows = {
                &dropout->mask, static_cast<std::uint64_t>(dropout->sample_ids[s]), chunks.data()};
        }
        softmax_of(of_sequence, after, sequences.factor(), of_rows);
        sequences.part(result.out, sequences.queries, s)
            .copy_(at::bmm(after, sequences.part(x.value, sequences.keys, s)));
        begin += keep_scores ? sequences.scores(s) : 0;
    }
    if (keep_scores)
        result.scores = scores;
    return result;
}

/// `gradients`: those of x, written here; `of_out` (R, H) contiguous.
void attend_backward(const Projections& x,
                     const Sequences& sequences,
                     const at::Tensor& scores,
                     double scale,
                     const at::Tensor& of_out,
                     const Projections& gradients) {
    RECORD_FUNCTION("hetseq::attention_backward", std::vector<c10::IValue>({of_out, scores}));
    const at::TensorOptions options = x.query.options();
    const bool has_dropout = scale > 0;
    const at::Tensor of_scores = at::empty({sequences.most_scores()}, options);
    const at::Tensor kept =
        has_dropout ? at::empty({sequences.most_scores()}, options) : at::Tensor{};
    std::int64_t begin = 0;
    for (std::int64_t s = 0; s < sequences.count(); ++s) {
        if (sequences.scores(s) == 0) {
            sequences.part(gradients.key, sequences.keys, s).zero_();
            sequences.part(gradients.value, sequences.keys, s).zero_();
            continue;
        }
        const at::Tensor probabilities = sequences.matrix(scores, begin, s);
        const at::Tensor dropped = has_dropout ? sequences.matrix(kept, 0, s) : at::Tensor{};
        const at::Tensor after = has_dropout ? dropped : probabilities;
        at::Tensor of_probabilities = sequences.matrix(of_scores, 0, s);
        const at::Tensor out = sequences.part(of_out, sequences.queries, s);
        at::bmm_out(
            of_probabilities, out, sequences.part(x.value, sequences.keys, s).transpose(1, 2));
        softmax_backward_of(
            probabilities, dropped, of_probabilities, sequences.factor(), has_dropout ? scale : 1);
        sequences.part(gradients.value, sequences.keys, s)
            .copy_(at::bmm(after.transpose(1, 2), out));
        sequences.part(gradients.query, sequences.queries, s)
            .copy_(at::bmm(of_probabilities, sequences.part(x.key, sequences.keys, s)));
        sequences.part(gradients.key, sequences.keys, s)
            .copy_(at::bmm(of_probabilities.transpose(1, 2),
                           sequences.part(x.query, sequences.queries, s)));
        begin += sequences.scores(s);
    }
}

struct SequenceAttention : torch::autograd::Function<SequenceAttention> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& queries,
                              const std::optional<at::Tensor>& keys_values,
                              const Sequences& sequences,
                              const std::optional<ChunkNumbers>& dropout) {
        const at::Tensor others = keys_values.value_or(at::Tensor{});
        const Attended attended = attend_to_sequences(
            split_projections(queries, others), sequences, dropout, /*keep_scores=*/true);
        context->save_for_backward({queries, others, attended.scores});
        context->saved_data["keys"] = sequences.keys;
        context->saved_data["queries"] = sequences.queries;
        context->saved_data["heads"] = sequences.heads;
        context->saved_data["width"] = sequences.width;
        context->saved_data["scale"] = dropout ? dropout->mask.scale() : 0.0;
        return attended.out;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const Sequences sequences{context->saved_data["keys"].toIntVector(),
                                  context->saved_data["queries"].toIntVector(),
                                  context->saved_data["heads"].toInt(),
                                  context->saved_data["width"].toInt()};
        const at::Tensor of_queries = at::empty_like(saved[0]);
        const at::Tensor of_keys_values =
            saved[1].defined() ? at::empty_like(saved[1]) : at::Tensor{};
        attend_backward(split_projections(saved[0], saved[1]),
                        sequences,
                        saved[2],
                        context->saved_data["scale"].toDouble(),
                        gradients[0].contiguous(),
                        split_projections(of_queries, of_keys_values));
        return {of_queries, of_keys_values, {}, {}};
    }
};

}  // namespace

at::Tensor sequence_attention(const at::Tensor& queries,
                              const at::Tensor& keys_values,
                              const AttentionSpans& spans,
                              std::int64_t heads,
                              const Dropout& dropout,
                              const DropoutExtent& extent) {
    if (c10::isReducedFloatingType(queries.scalar_type()))  // under autocast
        return sequence_attention(queries.to(at::kFloat),
                                  keys_values.defined() ? keys_values.to(at::kFloat) : keys_values,
                                  spans,
                                  heads,
                                  dropout,
                                  extent);
    HETSEQ_ASSERT(queries.is_contiguous() &&
                  (!keys_values.defined() || keys_values.is_contiguous()));
    const std::int64_t hidden = queries.size(1) / (keys_values.defined() ? 1 : 3);
    const Sequences sequences{spans.keys, spans.queries, heads, hidden / heads};
    std::optional<ChunkNumbers> numbers;
    if (dropout.p > 0) {
        numbers.emplace();
        numbers->mask = make_dropout_mask(dropout.p, dropout.key);
        numbers->sample_ids = dropout.sample_ids.const_data_ptr<std::int64_t>();
        if (spans.query_positions.defined())
            numbers->positions = spans.query_positions.const_data_ptr<std::int64_t>();
        numbers->most_rows = extent.rows;
        numbers->row_chunks = (extent.columns + DropoutMask::chunk - 1) / DropoutMask::chunk;
    }
    const bool needs_gradient =
        at::GradMode::is_enabled() &&
        (queries.requires_grad() || (keys_values.defined() && keys_values.requires_grad()));
    if (!needs_gradient)
        return attend_to_sequences(
                   split_projections(queries, keys_values), sequences, numbers, false)
            .out;
    return SequenceAttention::apply(
        queries,
        keys_values.defined() ? std::make_optional(keys_values) : std::optional<at::Tensor>{},
        sequences,
        numbers);
}

}  // namespace hetseq::detail
