#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/model/tensor_registry.hpp"
#include "hetseq/model/transformer/transformer_config.hpp"

#include "model/transformer_ops.hpp"

namespace hetseq::detail {

/// Attention within one sequence.
struct SelfAttentionWeights {
    Affine qkv;  // (3H, H): query, key and value in one product; files hold them apart
    Affine output;
    Affine norm;
};

/// The decoder's attention to the encoder's output.
struct CrossAttentionWeights {
    Affine query;      // (H, H)
    Affine key_value;  // (2H, H); files hold them apart
    Affine output;
    Affine norm;
};

struct FeedForwardWeights {
    Affine inner;   // (I, H)
    Affine output;  // (H, I)
    Affine norm;
};

struct EncoderLayerWeights {
    SelfAttentionWeights self;
    FeedForwardWeights feed_forward;
};

struct DecoderLayerWeights {
    SelfAttentionWeights self;
    CrossAttentionWeights cross;
    FeedForwardWeights feed_forward;
};

/// The parameters of an encoder-decoder Transformer, H wide. A layer's `norm` stands before its
/// part (pre-norm) or behind the sum with the residual (post-norm).
struct TransformerWeights {
    at::Tensor source_table, target_table;          // (V, H); scaled by sqrt(H) where they are read
    at::Tensor output_table;                        // (target V, H), without a bias
    at::Tensor source_positions, target_positions;  // (max_positions, H)
    std::vector<EncoderLayerWeights> encoder;
    std::vector<DecoderLayerWeights> decoder;
    std::optional<Affine> encoder_norm, decoder_norm;  // pre-norm only

    static constexpr double norm_eps = 1e-5;
};

/// Registers the parameters under fairseq's names, and sinusoidal positions as buffers.
TransformerWeights register_transformer(TensorRegistry& model, const TransformerConfig& config);

/// A registered parameter that files hold in parts: by its name's end, the ends of the parts'
/// names.
struct FusedParameter {
    std::string suffix;
    std::vector<std::string> parts;
};
const std::vector<FusedParameter>& fused_parameters();

}  // namespace hetseq::detail
