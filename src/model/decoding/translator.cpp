#include "hetseq/model/decoding/translator.hpp"

#include <string>

#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/transformer/transformer.hpp"

#include "decoder_model.hpp"

namespace hetseq {

namespace {

std::unique_ptr<DecoderModel> decoder_of(const Transformer& model) {
    const detail::TransformerWeights& weights = model.weights();
    const at::Tensor& table = weights.output_table;
    const bool is_plain =
        table.is_cpu() && (table.scalar_type() == at::kFloat || table.scalar_type() == at::kDouble);
    return is_plain ? detail::make_cpu_decoder(model.config(), weights)
                    : detail::make_tensor_decoder(model.config(), weights);
}

}  // namespace

Translator::Translator(const Transformer& model)
    : Translator{decoder_of(model),
                 model.config().source_vocab_size,
                 {static_cast<std::int32_t>(model.config().begin_id),
                  static_cast<std::int32_t>(model.config().end_id),
                  model.config().max_positions}} {}

std::vector<std::vector<Hypothesis>> Translator::translate(std::span<const Source> sources,
                                                           const BeamOptions& options) {
    std::vector<std::int64_t> lengths;
    for (const Source& source : sources) {
        lengths.push_back(static_cast<std::int64_t>(source.size()));
        for (const std::int32_t id : source)
            if (id < 0 || id >= source_vocab_size_)
                throw BadData(
                    "a source holds the id " + std::to_string(id),
                    "the model's vocabulary has " + std::to_string(source_vocab_size_) + " entries",
                    "encode it with the model's own vocabulary");
    }
    const std::unique_ptr<StepDecoder> decoder = model_->start(sources);
    return beam_search(*decoder, lengths, space_, options);
}

}  // namespace hetseq
