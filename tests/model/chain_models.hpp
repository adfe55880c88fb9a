#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include "hetseq/data/loading/padded_rows.hpp"
#include "hetseq/model/autocast.hpp"
#include "hetseq/model/bert/bert_classifiers.hpp"
#include "hetseq/model/init.hpp"
#include "hetseq/model/mnist_cnn.hpp"

#include "model/small_models.hpp"

/// Models that can be cut, with dropout, and stages of them.
namespace hetseq::test {

inline BertConfig chain_bert_config() {
    BertConfig config = bert_config("tiny");
    config.vocab_size = 200;
    config.layers = 3;
    config.max_position_embeddings = 32;
    return config;
}

inline std::shared_ptr<Model> untied_bert() {
    BertConfig config = chain_bert_config();
    config.ties_decoder = false;
    return make_bert(config);
}

inline std::shared_ptr<Model> tied_bert() {
    return make_bert(chain_bert_config());
}

inline std::shared_ptr<Model> chain_transformer(TransformerConfig::SharedEmbeddings shared,
                                                bool pre_norm,
                                                TransformerConfig::Positions positions) {
    TransformerConfig config = transformer_config("tiny");
    config.source_vocab_size = config.target_vocab_size = 90;
    config.encoder_layers = config.decoder_layers = 2;
    config.attention_dropout = config.activation_dropout = 0.2;
    config.max_positions = 32;
    config.shared_embeddings = shared;
    config.pre_norm = pre_norm;
    config.positions = positions;
    return make_transformer(config, {.label_smoothing = 0.1});
}

/// Rows of unlike lengths, whose padding is computed.
inline MicroBatch ragged_texts(std::int64_t begin, std::int64_t count) {
    MicroBatch batch = texts(begin, count);
    batch.padded_tokens = batch.tensors.at("input_ids").numel();
    return batch;
}

/// The same without computing padding.
inline MicroBatch texts_in_rows(std::int64_t begin, std::int64_t count) {
    MicroBatch batch = ragged_texts(begin, count);
    note_row_lengths(batch,
                     batch.tensors.at("attention_mask").to(at::kBool),
                     batch.tensors.at("masked_positions"));
    return batch;
}

inline MicroBatch labelled_texts(std::int64_t begin, std::int64_t count) {
    MicroBatch batch = texts_in_rows(begin, count);
    batch.tensors["labels"] = at::arange(begin, begin + count, at::kLong).remainder(3);
    return batch;
}

inline MicroBatch numbered_texts(std::int64_t begin, std::int64_t count) {
    MicroBatch batch = ragged_texts(begin, count);
    batch.tensors["labels"] = at::arange(begin, begin + count, at::kDouble) / 7;
    return batch;
}

/// Three words in each row.
inline MicroBatch labelled_words(std::int64_t begin, std::int64_t count) {
    MicroBatch batch = texts_in_rows(begin, count);
    const std::int64_t width = batch.tensors.at("input_ids").size(1);
    const at::Tensor words = at::tensor({1, 4, 9}, at::kLong);
    batch.tensors["word_positions"] =
        (at::arange(count, at::kLong).unsqueeze(1) * width + words).flatten();
    batch.tensors["word_counts"] = at::full({count}, 3, at::kLong);
    batch.tensors["labels"] = at::arange(3 * count, at::kLong).remainder(3);
    return batch;
}

/// Targets of unlike lengths too, however the batch is cut.
inline MicroBatch ragged_pairs(std::int64_t begin, std::int64_t count) {
    MicroBatch batch = pairs(begin, count);
    const at::Tensor all = batch.tensors.at("positions");
    const at::Tensor kept = all.remainder(9).lt(9 - (all.floor_divide(9) + begin).remainder(3));
    batch.tensors["positions"] = all.masked_select(kept);
    batch.tensors["labels"] = batch.tensors.at("labels").masked_select(kept);
    return batch;
}

inline std::vector<ModelCase> chain_models() {
    using Shared = TransformerConfig::SharedEmbeddings;
    using Positions = TransformerConfig::Positions;
    const BertClassifierSetup three{.labels = {"A", "B", "C"}};
    const auto transformer = [](Shared shared, bool pre_norm, Positions positions) {
        return [=] { return chain_transformer(shared, pre_norm, positions); };
    };
    return {
        {"Mnist", [] { return make_mnist_cnn(); }, images},
        {"Bert", untied_bert, ragged_texts},
        {"BertInRows", untied_bert, texts_in_rows},
        {"TiedBert", tied_bert, texts_in_rows},
        {"SequenceLabels",
         [=] { return make_bert_sequence_classifier(chain_bert_config(), three); },
         labelled_texts},
        {"SequenceNumbers",
         [] {
             return make_bert_sequence_classifier(
                 chain_bert_config(), {.labels = {"x"}}, SequenceTarget::number);
         },
         numbered_texts},
        {"TokenLabels",
         [=] { return make_bert_token_classifier(chain_bert_config(), three); },
         labelled_words},
        {"Transformer", transformer(Shared::none, false, Positions::sinusoidal), ragged_pairs},
        {"PreNorm", transformer(Shared::none, true, Positions::learned), ragged_pairs},
        {"SharedByDecoder", transformer(Shared::decoder, false, Positions::learned), ragged_pairs},
        {"SharedByDecoderPreNorm",
         transformer(Shared::decoder, true, Positions::sinusoidal),
         ragged_pairs},
        {"SharedByAll", transformer(Shared::all, false, Positions::sinusoidal), ragged_pairs},
        {"SharedByAllPreNorm", transformer(Shared::all, true, Positions::learned), ragged_pairs}};
}

/// Stages of one model with the parameters of `seed`.
inline std::vector<std::shared_ptr<Model>> stages_of(const ModelCase& model,
                                                     const std::vector<UnitRange>& ranges,
                                                     std::uint64_t seed,
                                                     Precision precision,
                                                     at::Device device = at::kCPU) {
    std::vector<std::shared_ptr<Model>> stages;
    for (const UnitRange& range : ranges) {
        stages.push_back(model.make());
        stages.back()->hold(range);
        initialise_parameters(*stages.back(), seed);
        stages.back()->to(device, precision);
    }
    return stages;
}

/// All cuts into two stages, and some into three.
inline std::vector<std::vector<UnitRange>> cuts_of(std::size_t units) {
    std::vector<std::vector<UnitRange>> cuts;
    for (std::size_t at = 1; at < units; ++at) {
        cuts.push_back({{0, at}, {at, units}});
        if (at + 1 < units)
            cuts.push_back({{0, at}, {at, at + 1}, {at + 1, units}});
    }
    return cuts;
}

/// The cuts into three stages among them. Each border is in one.
inline std::vector<std::vector<UnitRange>> cuts_in_three(std::size_t units) {
    std::vector<std::vector<UnitRange>> cuts = cuts_of(units);
    std::erase_if(cuts, [](const std::vector<UnitRange>& cut) { return cut.size() != 3; });
    return cuts;
}

/// The units "[0, 2) [2, 5)".
inline std::string text_of(const std::vector<UnitRange>& ranges) {
    std::string text;
    for (const UnitRange& range : ranges)
        text += (text.empty() ? "[" : " [") + std::to_string(range.begin) + ", " +
                std::to_string(range.end) + ")";
    return text;
}

}  // namespace hetseq::test
