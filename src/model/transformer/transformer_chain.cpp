#include "transformer_chain.hpp"

#include <algorithm>

namespace hetseq::detail {

namespace {

using Shared = TransformerConfig::SharedEmbeddings;

const std::string encoder_layer_prefix = "encoder.layers.";
const std::string decoder_layer_prefix = "decoder.layers.";
const std::string source_table = "encoder.embed_tokens.weight";
const std::string target_table = "decoder.embed_tokens.weight";

// The embeddings have one, the attention of a layer and its feed-forward part two each.
constexpr std::size_t dropouts_of_embeddings = 1;
constexpr std::size_t dropouts_of_encoder_layer = 4;
constexpr std::size_t dropouts_of_decoder_layer = 6;

std::size_t layer_of(const std::string& name, const std::string& prefix) {
    return std::stoul(name.substr(prefix.size()));
}

}  // namespace

std::uint32_t TransformerChain::first_dropout(std::size_t unit) const {
    std::size_t dropouts = 0;
    if (unit >= first_encoder_layer)
        dropouts += dropouts_of_embeddings +
                    dropouts_of_encoder_layer *
                        (std::min(unit, decoder_embeddings()) - first_encoder_layer);
    if (unit >= first_decoder_layer())
        dropouts +=
            dropouts_of_embeddings + dropouts_of_decoder_layer * (unit - first_decoder_layer());
    return static_cast<std::uint32_t>(dropouts);
}

std::vector<ChainUnit> TransformerChain::units(const TensorRegistry& model) const {
    std::vector<ChainUnit> units;
    for (std::size_t unit = 0; unit < size(); ++unit)
        units.push_back({kind_of(unit), {}, is_layer(unit)});
    for (const NamedTensor& parameter : model.named_parameters())
        units[unit_of(parameter.name)].parameters.push_back(parameter.name);
    if (shared_ == Shared::all)
        units[decoder_embeddings()].parameters.push_back(source_table);
    if (shared_ != Shared::none)
        units[output()].parameters.push_back(shared_ == Shared::all ? source_table : target_table);
    return units;
}

std::size_t TransformerChain::unit_of(const std::string& parameter_name) const {
    if (parameter_name.starts_with(encoder_layer_prefix))
        return first_encoder_layer + layer_of(parameter_name, encoder_layer_prefix);
    if (parameter_name.starts_with(decoder_layer_prefix))
        return first_decoder_layer() + layer_of(parameter_name, decoder_layer_prefix);
    if (parameter_name.starts_with("encoder.embed_"))
        return 0;
    if (parameter_name.starts_with("decoder.embed_") ||
        parameter_name.starts_with("encoder.layer_norm."))
        return decoder_embeddings();
    return output();
}

std::string TransformerChain::kind_of(std::size_t unit) const {
    if (unit == 0)
        return "encoder embeddings";
    if (unit == decoder_embeddings())
        return "decoder embeddings";
    if (unit == output())
        return "output";
    return unit < decoder_embeddings() ? "encoder layer" : "decoder layer";
}

bool TransformerChain::is_layer(std::size_t unit) const {
    return unit != 0 && unit != decoder_embeddings() && unit != output();
}

}  // namespace hetseq::detail
