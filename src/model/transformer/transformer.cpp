#include "hetseq/model/transformer/transformer.hpp"

#include <cmath>
#include <utility>

#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"

#include "encoder_decoder.hpp"

namespace hetseq::detail {

namespace {

bool has_end(const std::string& text, const std::string& end) {
    return text.size() >= end.size() &&
           text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

EncoderDecoder::EncoderDecoder(const TransformerConfig& config, TransformerSetup setup)
    : config_{config}, setup_{std::move(setup)}, chain_{config} {
    check(config, "the Transformer to be made");
    if (!(setup_.label_smoothing >= 0 && setup_.label_smoothing < 1))
        throw BadConfig("label smoothing is " + std::to_string(setup_.label_smoothing),
                        "it must lie in [0, 1)",
                        "give another --label-smoothing");
    weights_ = register_transformer(*this, config_);
}

std::vector<NamedTensor> EncoderDecoder::stored_tensors() const {
    std::vector<NamedTensor> tensors;
    const auto computed = named_buffers();  // sinusoids
    for (const NamedTensor& parameter : Model::stored_tensors()) {
        if (computed.contains(parameter.name))
            continue;
        const FusedParameter* fused = nullptr;
        for (const FusedParameter& one : fused_parameters())
            if (parameter.name.find(one.suffix) != std::string::npos)
                fused = &one;
        if (fused == nullptr) {
            tensors.push_back(parameter);
            continue;
        }
        const std::size_t at = parameter.name.find(fused->suffix);
        for (std::size_t i = 0; i < fused->parts.size(); ++i) {
            std::string name = parameter.name;
            name.replace(at, fused->suffix.size(), fused->parts[i]);
            tensors.push_back(
                {name,
                 parameter.tensor.detach().narrow(
                     0, static_cast<std::int64_t>(i) * config_.width, config_.width)});
        }
    }
    return tensors;
}

// fairseq writes shared tables under each of their names.
std::map<std::string, std::string> EncoderDecoder::tensor_aliases() const {
    using Shared = TransformerConfig::SharedEmbeddings;
    const std::string source = "encoder.embed_tokens.weight";
    const std::string target = "decoder.embed_tokens.weight";
    const std::string output = "decoder.output_projection.weight";
    if (config_.shared_embeddings == Shared::all)
        return {{target, source}, {output, source}};
    if (config_.shared_embeddings == Shared::decoder)
        return {{output, target}};
    return {};
}

std::vector<CompanionFile> EncoderDecoder::companion_files() const {
    std::vector<CompanionFile> files = Model::companion_files();
    files.insert(files.end(), setup_.vocabularies.begin(), setup_.vocabularies.end());
    return files;
}

// As fairseq's: tables N(0, 1 / H), matrices by Glorot and Bengio 2010, queries, keys and values
// with a gain of 1 / sqrt(2).
InitialDistribution EncoderDecoder::initial_distribution(const std::string& name) const {
    using Kind = InitialDistribution::Kind;
    const auto width = static_cast<double>(config_.width);
    if (has_end(name, "bias"))
        return {Kind::constant, 0};
    if (name.find("layer_norm") != std::string::npos)
        return {Kind::constant, 1};
    if (name.find("embed_") != std::string::npos ||
        name.find("output_projection") != std::string::npos)
        return {Kind::normal, 1 / std::sqrt(width)};
    if (name.find("fc1") != std::string::npos || name.find("fc2") != std::string::npos)
        return {Kind::uniform, std::sqrt(6 / (width + static_cast<double>(config_.inner_width)))};
    const double gain = name.find("out_proj") != std::string::npos ? 1 : 1 / std::sqrt(2.0);
    return {Kind::uniform, gain * std::sqrt(3 / width)};
}

}  // namespace hetseq::detail

namespace hetseq {

std::shared_ptr<Transformer> make_transformer(const TransformerConfig& config,
                                              TransformerSetup setup) {
    return std::make_shared<detail::EncoderDecoder>(config, std::move(setup));
}

}  // namespace hetseq
