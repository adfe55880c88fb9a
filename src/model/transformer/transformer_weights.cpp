#include "transformer_weights.hpp"

#include <cmath>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

namespace hetseq::detail {

namespace {

using Positions = TransformerConfig::Positions;
using Shared = TransformerConfig::SharedEmbeddings;

// Vaswani et al. 2017, section 3.5: sines at even elements, cosines at odd ones.
at::Tensor sinusoids(std::int64_t positions, std::int64_t width) {
    at::Tensor table = at::empty({positions, width}, at::kDouble);
    auto* out = table.mutable_data_ptr<double>();
    for (std::int64_t position = 0; position < positions; ++position)
        for (std::int64_t i = 0; i < width; i += 2) {
            const double angle =
                static_cast<double>(position) /
                std::pow(10000.0, static_cast<double>(i) / static_cast<double>(width));
            out[position * width + i] = std::sin(angle);
            out[position * width + i + 1] = std::cos(angle);
        }
    return table.to(at::kFloat);
}

class Registration {
public:
    Registration(TensorRegistry& model, const TransformerConfig& config)
        : model_{model}, config_{config} {}

    TransformerWeights run() {
        TransformerWeights weights;
        register_tables(weights);
        weights.source_positions = positions("encoder");
        weights.target_positions = positions("decoder");
        for (std::int64_t i = 0; i < config_.encoder_layers; ++i) {
            const std::string prefix = "encoder.layers." + std::to_string(i) + ".";
            weights.encoder.push_back({self_attention_of(prefix), feed_forward(prefix)});
        }
        for (std::int64_t i = 0; i < config_.decoder_layers; ++i) {
            const std::string prefix = "decoder.layers." + std::to_string(i) + ".";
            weights.decoder.push_back(
                {self_attention_of(prefix), cross_attention(prefix), feed_forward(prefix)});
        }
        if (config_.pre_norm) {
            weights.encoder_norm = norm("encoder.layer_norm.");
            weights.decoder_norm = norm("decoder.layer_norm.");
        }
        return weights;
    }

private:
    at::Tensor parameter(const std::string& name, at::IntArrayRef shape) {
        return model_.register_parameter(name, at::empty(shape));
    }

    Affine linear(const std::string& name, std::int64_t outputs, std::int64_t inputs) {
        const at::Tensor weight = parameter(name + "weight", {outputs, inputs});
        return {weight, parameter(name + "bias", {outputs})};
    }

    Affine norm(const std::string& name) {
        const at::Tensor weight = parameter(name + "weight", {config_.width});
        return {weight, parameter(name + "bias", {config_.width})};
    }

    void register_tables(TransformerWeights& weights) {
        const Shared shared = config_.shared_embeddings;
        weights.source_table =
            parameter("encoder.embed_tokens.weight", {config_.source_vocab_size, config_.width});
        weights.target_table = shared == Shared::all
                                   ? weights.source_table
                                   : parameter("decoder.embed_tokens.weight",
                                               {config_.target_vocab_size, config_.width});
        weights.output_table = shared == Shared::none
                                   ? parameter("decoder.output_projection.weight",
                                               {config_.target_vocab_size, config_.width})
                                   : weights.target_table;
    }

    at::Tensor positions(const std::string& side) {
        const std::string name = side + ".embed_positions.weight";
        if (config_.positions == Positions::learned)
            return parameter(name, {config_.max_positions, config_.width});
        return model_.register_buffer(side + "_positions",
                                      sinusoids(config_.max_positions, config_.width));
    }

    SelfAttentionWeights self_attention_of(const std::string& prefix) {
        const std::int64_t width = config_.width;
        const Affine qkv = linear(prefix + "self_attn.qkv_proj.", 3 * width, width);
        const Affine output = linear(prefix + "self_attn.out_proj.", width, width);
        return {qkv, output, norm(prefix + "self_attn_layer_norm.")};
    }

    CrossAttentionWeights cross_attention(const std::string& prefix) {
        const std::int64_t width = config_.width;
        const Affine query = linear(prefix + "encoder_attn.q_proj.", width, width);
        const Affine key_value = linear(prefix + "encoder_attn.kv_proj.", 2 * width, width);
        const Affine output = linear(prefix + "encoder_attn.out_proj.", width, width);
        return {query, key_value, output, norm(prefix + "encoder_attn_layer_norm.")};
    }

    FeedForwardWeights feed_forward(const std::string& prefix) {
        const Affine inner = linear(prefix + "fc1.", config_.inner_width, config_.width);
        const Affine output = linear(prefix + "fc2.", config_.width, config_.inner_width);
        return {inner, output, norm(prefix + "final_layer_norm.")};
    }

    TensorRegistry& model_;
    const TransformerConfig& config_;
};

}  // namespace

TransformerWeights register_transformer(TensorRegistry& model, const TransformerConfig& config) {
    return Registration(model, config).run();
}

const std::vector<FusedParameter>& fused_parameters() {
    static const std::vector<FusedParameter> fused{
        {"self_attn.qkv_proj.", {"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}},
        {"encoder_attn.kv_proj.", {"encoder_attn.k_proj.", "encoder_attn.v_proj."}}};
    return fused;
}

}  // namespace hetseq::detail
