#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "hetseq/model/dropout.hpp"
#include "hetseq/model/model.hpp"

#include "kernels/fused/fused_arrays.hpp"

namespace hetseq::detail {

enum class CountCorrect { no, yes };

/// The source of a dropout's mask. `p` = 0 means no dropout.
struct Dropout {
    double p = 0;
    DropoutKey key;
    at::Tensor sample_ids;   // (n) int64
    at::Tensor positions{};  // (n) int64 where each row is one token of a sample; or undefined
};

/// dropout(x), x (n, ...).
at::Tensor dropped(const at::Tensor& x, const Dropout& dropout);

/// The values that one forward pass carries along.
struct ForwardPass {
    const MicroBatch& batch;
    const ForwardContext& context;
    std::uint32_t dropouts = 0;  // so far; the number is the layer of the mask's key

    /// No dropout in evaluation; it takes its number there too.
    Dropout next_dropout(double p) {
        return {context.mode == Mode::train ? p : 0,
                {context.seed, context.update, dropouts++},
                batch.sample_ids};
    }
    CountCorrect count_correct() const {
        return context.mode == Mode::evaluate ? CountCorrect::yes : CountCorrect::no;
    }
};

/// Weight (out, in) and bias (out) of a linear layer, or weight and bias (H) of a layer
/// normalisation.
struct Affine {
    at::Tensor weight, bias;
};

/// Where rows of tokens are in sequences of `length` places each.
struct RowPlaces {
    std::int64_t sequences = 0, length = 0;
    at::Tensor places{};  // (rows) int64, ascending, in sequences * length; undefined: all of these
    at::Tensor
        row_of{};  // (sequences * length) int64: a place's row, -1 for padding; undefined likewise
};

/// Rows of tokens, and the same as factors of products: of 16 bits where a GPU computes in them.
struct Rows {
    at::Tensor wide, factors;
};
Rows rows_of(const at::Tensor& x);

/// x weight^T + bias, x (..., inputs). The bias may be undefined.
at::Tensor linear(const at::Tensor& x, const Affine& affine);

/// activation(x weight^T + bias), x (..., inputs).
at::Tensor linear_activation(const at::Tensor& x, const Affine& affine, Activation activation);

/// Rows of tables: those of words times `scale`, of positions and, where there are any, of
/// segments.
struct Embedding {
    at::Tensor words;              // (V, H)
    at::Tensor ids;                // (...) int64
    std::int64_t padding_id = -1;  // has no gradient
    double scale = 1;
    at::Tensor positions;       // (P, H)
    at::Tensor position_ids{};  // as `ids`; undefined: sequences of `length` from 0 on
    std::int64_t length = 1;
    at::Tensor segments{};     // (S, H)
    at::Tensor segment_ids{};  // as `ids`
};

/// Multi-head scaled dot-product attention within each sequence.
/// `qkv` (n, T, 3H): queries, keys and values side by side, each split into `heads`.
/// `key_mask` (n, T) bool, false where a key is padding; undefined: no padding.
/// Dropout applies to the probabilities. `extent`: how far T can reach, where it is the longest
/// row of a micro-batch. Returns (n, T, H).
at::Tensor self_attention(const at::Tensor& qkv,
                          const at::Tensor& key_mask,
                          std::int64_t heads,
                          const Dropout& dropout,
                          const DropoutExtent& extent = {});

/// The keys that a query sees.
struct AttentionMask {
    at::Tensor keys;         // (n, S) bool, false for padding; undefined: no padding
    bool is_causal = false;  // query i sees keys 0 to i; without `keys`
};

/// Multi-head scaled dot-product attention. `queries` (n, T, H) and `keys_values` (n, S, 2H), keys
/// and values side by side; or `queries` (n, T, 3H) holds all three and `keys_values` is undefined.
/// Each is split into `heads`. Dropout applies to the probabilities; its mask does not depend on
/// how far T and S are padded, up to `extent`. Returns (n, T, H).
at::Tensor attention(const at::Tensor& queries,
                     const at::Tensor& keys_values,
                     std::int64_t heads,
                     const AttentionMask& mask,
                     const Dropout& dropout,
                     const DropoutExtent& extent);

/// A linear layer in front of attention. `x` may be undefined, where there is none.
struct Projection {
    at::Tensor x;  // (n, length, inputs)
    Affine layer{};
};
/// `attention` of what the layers make.
at::Tensor projected_attention(const Projection& queries,
                               const Projection& keys_values,
                               std::int64_t heads,
                               const AttentionMask& mask,
                               const Dropout& dropout,
                               const DropoutExtent& extent);

/// norm(residual + dropout(x weight^T + bias)), x (..., inputs) and residual (..., H).
Rows linear_dropout_add_norm(const at::Tensor& x,
                             const Affine& linear,
                             const at::Tensor& residual,
                             const Affine& norm,
                             double eps,
                             const Dropout& dropout);

/// Negative log-likelihoods of `labels` (M) under softmax(x weight^T + bias), x (M, H), summed; and
/// how many labels are the likeliest class, where `count_correct`.
struct CrossEntropy {
    at::Tensor loss, correct;  // scalars; `correct` undefined unless asked for
};
CrossEntropy linear_cross_entropy(const at::Tensor& x,
                                  const Affine& linear,
                                  const at::Tensor& labels,
                                  CountCorrect count_correct);

}  // namespace hetseq::detail
