#pragma once

#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include "hetseq/model/bert/bert_config.hpp"
#include "hetseq/model/model.hpp"

#include <nlohmann/json.hpp>

namespace hetseq::test {

inline BertConfig without_dropout(BertConfig config) {
    config.hidden_dropout = config.attention_dropout = 0;
    return config;
}

inline BertConfig bert_config_of(const nlohmann::json& values) {
    BertConfig config;
    config.vocab_size = values["vocab_size"];
    config.hidden_size = values["hidden_size"];
    config.layers = values["num_hidden_layers"];
    config.heads = values["num_attention_heads"];
    config.intermediate_size = values["intermediate_size"];
    config.max_position_embeddings = values.value("max_position_embeddings", 512);
    return config;
}

/// Norms of the gradients by stored name: of the three parts of a fused parameter each.
inline double gradient_norm_of(Model& model, const std::string& name) {
    for (const auto& [part, index] : {std::pair{"query", 0}, {"key", 1}, {"value", 2}}) {
        const std::size_t at = name.find(std::string("self.") + part);
        if (at == std::string::npos)
            continue;
        std::string fused = name;
        fused.replace(at, 5 + std::string(part).size(), "self.qkv");
        const at::Tensor gradient = model.named_parameters()[fused].grad();
        return gradient.chunk(3, 0)[static_cast<std::size_t>(index)]
            .to(at::kDouble)
            .norm()
            .item<double>();
    }
    return model.named_parameters()[name].grad().to(at::kDouble).norm().item<double>();
}

}  // namespace hetseq::test
