#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/model/chain.hpp"
#include "hetseq/model/tensor_registry.hpp"
#include "hetseq/model/transformer/transformer_config.hpp"

namespace hetseq::detail {

/// A Transformer's units in order: "encoder embeddings", "encoder layer"s, "decoder embeddings",
/// "decoder layer"s, "output". A last normalisation is in the unit behind its layers.
class TransformerChain {
public:
    explicit TransformerChain(const TransformerConfig& config)
        : encoder_layers_{static_cast<std::size_t>(config.encoder_layers)},
          decoder_layers_{static_cast<std::size_t>(config.decoder_layers)},
          shared_{config.shared_embeddings} {}

    static constexpr std::size_t first_encoder_layer = 1;
    std::size_t decoder_embeddings() const noexcept { return 1 + encoder_layers_; }
    std::size_t first_decoder_layer() const noexcept { return decoder_embeddings() + 1; }
    std::size_t output() const noexcept { return first_decoder_layer() + decoder_layers_; }
    std::size_t size() const noexcept { return output() + 1; }

    /// The number of a unit's first dropout in the model.
    std::uint32_t first_dropout(std::size_t unit) const;
    /// With the names of the parameters that `register_transformer` gave to `model`.
    std::vector<ChainUnit> units(const TensorRegistry& model) const;

private:
    std::size_t unit_of(const std::string& parameter_name) const;
    std::string kind_of(std::size_t unit) const;
    bool is_layer(std::size_t unit) const;

    std::size_t encoder_layers_, decoder_layers_;
    TransformerConfig::SharedEmbeddings shared_;
};

}  // namespace hetseq::detail
