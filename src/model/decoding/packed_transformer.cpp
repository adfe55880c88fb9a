#include "packed_transformer.hpp"

#include <algorithm>

#include <ATen/core/Tensor.h>

namespace hetseq::detail {

namespace {

template <class T>
AlignedArray<T> copied(const at::Tensor& tensor) {
    const at::Tensor values =
        tensor.detach()
            .to(at::device(at::kCPU).dtype(c10::CppTypeToScalarType<T>::value))
            .contiguous();
    AlignedArray<T> array(values.numel());
    std::copy_n(values.const_data_ptr<T>(), values.numel(), array.data());
    return array;
}

template <class T>
PackedTable<T> table(const at::Tensor& tensor) {
    return {copied<T>(tensor), tensor.size(1)};
}

template <class T>
PackedNorm<T> packed_norm(const Affine& norm) {
    return {copied<T>(norm.weight), copied<T>(norm.bias)};
}

template <class T>
PackedLinear<T> packed_linear(const Affine& linear) {
    return {linear.weight, linear.bias};
}

template <class T>
PackedSelfAttention<T> packed(const SelfAttentionWeights& weights) {
    return {packed_linear<T>(weights.qkv),
            packed_linear<T>(weights.output),
            packed_norm<T>(weights.norm)};
}

template <class T>
PackedCrossAttention<T> packed(const CrossAttentionWeights& weights) {
    return {packed_linear<T>(weights.query),
            packed_linear<T>(weights.key_value),
            packed_linear<T>(weights.output),
            packed_norm<T>(weights.norm)};
}

template <class T>
PackedFeedForward<T> packed(const FeedForwardWeights& weights) {
    return {packed_linear<T>(weights.inner),
            packed_linear<T>(weights.output),
            packed_norm<T>(weights.norm)};
}

}  // namespace

template <class T>
PackedTransformer<T>::PackedTransformer(const TransformerConfig& config,
                                        const TransformerWeights& weights)
    : width{config.width},
      heads{config.heads, config.width / config.heads},
      pre_norm{config.pre_norm},
      gelu{config.activation == TransformerConfig::Activation::gelu},
      source_table{table<T>(weights.source_table)},
      target_table{table<T>(weights.target_table)},
      source_positions{table<T>(weights.source_positions)},
      target_positions{table<T>(weights.target_positions)},
      output{weights.output_table, {}} {
    for (const EncoderLayerWeights& layer : weights.encoder)
        encoder.push_back({packed<T>(layer.self), packed<T>(layer.feed_forward)});
    for (const DecoderLayerWeights& layer : weights.decoder)
        decoder.push_back(
            {packed<T>(layer.self), packed<T>(layer.cross), packed<T>(layer.feed_forward)});
    if (weights.encoder_norm)
        encoder_norm = packed_norm<T>(*weights.encoder_norm);
    if (weights.decoder_norm)
        decoder_norm = packed_norm<T>(*weights.decoder_norm);
}

template struct PackedTransformer<float>;
template struct PackedTransformer<double>;

}  // namespace hetseq::detail
