#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/kernels/cached_attention_loops.hpp"
#include "model/transformer/transformer_weights.hpp"
#include "packed_linear.hpp"

namespace hetseq::detail {

template <class T>
struct PackedNorm {
    AlignedArray<T> weight, bias;
};

/// A part of a layer: what it computes is its own, the rest is alike in all.
template <class T>
struct PackedSelfAttention {
    PackedLinear<T> qkv, output;
    PackedNorm<T> norm;
};

template <class T>
struct PackedCrossAttention {
    PackedLinear<T> query, key_value, output;
    PackedNorm<T> norm;
};

template <class T>
struct PackedFeedForward {
    PackedLinear<T> inner, output;
    PackedNorm<T> norm;
};

template <class T>
struct PackedEncoderLayer {
    PackedSelfAttention<T> self;
    PackedFeedForward<T> feed_forward;
};

template <class T>
struct PackedDecoderLayer {
    PackedSelfAttention<T> self;
    PackedCrossAttention<T> cross;
    PackedFeedForward<T> feed_forward;
};

/// A table (rows, width) that rows are read from.
template <class T>
struct PackedTable {
    AlignedArray<T> values;
    std::int64_t width = 0;

    const T* row(std::int64_t i) const { return values.data() + i * width; }
};

/// A copy of a Transformer's parameters on the CPU.
template <class T>
struct PackedTransformer {
    PackedTransformer(const TransformerConfig& config, const TransformerWeights& weights);

    std::int64_t width;
    HeadShape heads;
    bool pre_norm;
    bool gelu;
    PackedTable<T> source_table, target_table, source_positions, target_positions;
    PackedLinear<T> output;
    std::vector<PackedEncoderLayer<T>> encoder;
    std::vector<PackedDecoderLayer<T>> decoder;
    std::optional<PackedNorm<T>> encoder_norm, decoder_norm;
};

}  // namespace hetseq::detail
