#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include "hetseq/model/bert/bert.hpp"
#include "hetseq/model/transformer/transformer.hpp"

#include "model/image_batch.hpp"

/// Small models, and batches for them.
namespace hetseq::test {

constexpr std::int64_t samples = 24;  // that there are of each kind

/// The rows of the samples [begin, begin + count).
inline MicroBatch rows_of(TensorDict rows, std::int64_t begin, std::int64_t count) {
    MicroBatch batch;
    for (auto& [name, tensor] : rows)
        batch.tensors[name] = tensor.narrow(0, begin, count);
    batch.sample_ids = at::arange(40 + begin, 40 + begin + count, at::kLong);
    batch.samples = batch.units = count;
    return batch;
}

inline MicroBatch images(std::int64_t begin, std::int64_t count) {
    return rows_of(image_batch(samples).tensors, begin, count);
}

inline MicroBatch texts(std::int64_t begin, std::int64_t count) {
    constexpr std::int64_t length = 16;
    at::manual_seed(6);
    const at::Tensor lengths = length - at::arange(samples, at::kLong) % 5;
    const TensorDict rows{
        {"input_ids", at::randint(200, {samples, length}, at::kLong)},
        {"segment_ids", at::randint(2, {samples, length}, at::kLong)},
        {"attention_mask",
         (at::arange(length, at::kLong).unsqueeze(0) < lengths.unsqueeze(1)).to(at::kLong)},
        {"masked_labels", at::randint(200, {samples}, at::kLong)},
        {"next_sentence_labels", at::randint(2, {samples}, at::kLong)}};
    MicroBatch batch = rows_of(rows, begin, count);
    batch.tensors["masked_positions"] = at::arange(count, at::kLong) * length + 3;
    return batch;
}

inline MicroBatch pairs(std::int64_t begin, std::int64_t count) {
    constexpr std::int64_t length = 9;
    at::manual_seed(7);
    const TensorDict rows{{"source", at::randint(3, 90, {samples, length}, at::kLong)},
                          {"source_lengths", length - at::arange(samples, at::kLong) % 5},
                          {"target_input", at::randint(3, 90, {samples, length}, at::kLong)},
                          {"labels", at::randint(3, 90, {samples, length}, at::kLong)}};
    MicroBatch batch = rows_of(rows, begin, count);
    batch.tensors["labels"] = batch.tensors["labels"].flatten();
    batch.tensors["positions"] = at::arange(count * length, at::kLong);
    return batch;
}

inline std::shared_ptr<Model> small_bert() {
    BertConfig config = bert_config("tiny");
    config.vocab_size = 200;
    return make_bert(config);
}

inline std::shared_ptr<Model> small_transformer_with(TransformerConfig::Activation activation) {
    TransformerConfig config = transformer_config("tiny");
    config.source_vocab_size = config.target_vocab_size = 90;
    config.activation = activation;
    return make_transformer(config, {.label_smoothing = 0.1});
}

inline std::shared_ptr<Model> small_transformer() {
    return small_transformer_with(TransformerConfig::Activation::relu);
}

inline MicroBatch on(at::Device device, MicroBatch batch) {
    for (auto& [name, tensor] : batch.tensors)
        tensor = tensor.to(device);
    batch.sample_ids = batch.sample_ids.to(device);
    return batch;
}

/// A model, and batches of the samples [begin, begin + count).
struct ModelCase {
    std::string name;
    std::function<std::shared_ptr<Model>()> make;
    std::function<MicroBatch(std::int64_t begin, std::int64_t count)> batch;
};

inline void PrintTo(const ModelCase& one, std::ostream* out) {
    *out << one.name;
}

inline std::string name_of(const testing::TestParamInfo<ModelCase>& info) {
    return info.param.name;
}

}  // namespace hetseq::test
