#pragma once

#include <memory>

#include "hetseq/model/decoding/step_decoder.hpp"
#include "hetseq/model/transformer/transformer_config.hpp"

#include "model/transformer/transformer_weights.hpp"

namespace hetseq::detail {

/// For parameters in fp32 or fp64 on the CPU: loops of its own over all hypotheses at once. What a
/// sentence gets does not depend, to the last bit, on the other sentences of its batch.
std::unique_ptr<DecoderModel> make_cpu_decoder(const TransformerConfig& config,
                                               const TransformerWeights& weights);

/// For parameters of any type on any device, with LibTorch's operators.
std::unique_ptr<DecoderModel> make_tensor_decoder(const TransformerConfig& config,
                                                  const TransformerWeights& weights);

}  // namespace hetseq::detail
