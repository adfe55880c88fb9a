#include "hetseq/model/bert/bert_config.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "util/temporary_folder.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using test::TemporaryFolder;

TEST(BertConfigTest, PresetsHaveTheirPapersSizes) {
    struct {
        const char* name;
        std::int64_t layers, hidden_size, heads, intermediate_size;
    } const presets[] = {{"tiny", 2, 128, 2, 512},
                         {"mini", 4, 256, 4, 1024},
                         {"small", 4, 512, 8, 2048},
                         {"base", 12, 768, 12, 3072},
                         {"large", 24, 1024, 16, 4096}};
    for (const auto& preset : presets) {
        const BertConfig config = bert_config(preset.name);

        EXPECT_EQ(config.layers, preset.layers);
        EXPECT_EQ(config.hidden_size, preset.hidden_size);
        EXPECT_EQ(config.heads, preset.heads);
        EXPECT_EQ(config.intermediate_size, preset.intermediate_size);
        EXPECT_EQ(config.vocab_size, 30522);
    }
}

TEST(BertConfigTest, ReadsAConfigurationOfTransformers) {
    const BertConfig config = bert_config("tests/reference/pretrained_bert/config.json");

    EXPECT_EQ(config.vocab_size, 97);
    EXPECT_EQ(config.hidden_size, 8);
    EXPECT_EQ(config.layers, 1);
    EXPECT_EQ(config.heads, 2);
    EXPECT_EQ(config.intermediate_size, 12);
    EXPECT_EQ(config.max_position_embeddings, 24);
    EXPECT_EQ(config.initializer_range, 0.5);
}

TEST(BertConfigTest, WhatIsWrittenIsRead) {
    const TemporaryFolder folder;
    BertConfig config = bert_config("mini");
    config.hidden_dropout = 0.25;
    config.classifier_dropout = 0.5;
    config.pad_token_id = 3;
    config.activation = BertConfig::Activation::silu;
    config.ties_decoder = false;
    folder.write("config.json", to_json(config));

    const BertConfig read = read_bert_config(folder / "config.json");

    EXPECT_EQ(to_json(read), to_json(config));
}

std::string message_of(const std::string& json) {
    const TemporaryFolder folder;
    folder.write("config.json", json);
    try {
        read_bert_config(folder / "config.json");
    } catch (const BadConfig& error) {
        return error.what();
    }
    return "accepted";
}

TEST(BertConfigTest, WhatHetseqsBertIsNotIsNamed) {
    const std::pair<const char*, const char*> cases[] = {
        {R"({"model_type": "roberta"})", "model_type"},
        {R"({"hidden_act": "quick_gelu"})", "hidden_act is \"quick_gelu\""},
        {R"({"hidden_act": 1})", "hidden_act"},
        {R"({"position_embedding_type": "relative_key"})", "position_embedding_type"},
        {R"({"is_decoder": true})", "is_decoder"},
        {R"({"add_cross_attention": true})", "add_cross_attention"},
        {R"({"is_encoder_decoder": true})", "is_encoder_decoder"},
        {R"({"pruned_heads": {"0": [1]}})", "pruned_heads"},
        {R"({"quantization_config": {"bits": 8}})", "quantization_config"},
        {R"({"tie_word_embeddings": "no"})", "tie_word_embeddings"},
        {R"({"vocab_size": 0})", "vocab_size"},
        {R"({"vocab_size": "many"})", "vocab_size"},
        {R"({"hidden_size": 1.5})", "hidden_size"},
        {R"({"hidden_size": 10, "num_attention_heads": 3})", "num_attention_heads"},
        {R"({"num_hidden_layers": -1})", "num_hidden_layers"},
        {R"({"hidden_dropout_prob": 1})", "hidden_dropout_prob"},
        {R"({"attention_probs_dropout_prob": -0.1})", "attention_probs_dropout_prob"},
        {R"({"classifier_dropout": 1})", "classifier_dropout"},
        {R"({"classifier_dropout": "none"})", "classifier_dropout"},
        {R"({"layer_norm_eps": "small"})", "layer_norm_eps"},
        {R"({"initializer_range": -1})", "initializer_range"},
        {R"({"pad_token_id": 30522})", "pad_token_id"},
        {R"({"pad_token_id": -1})", "pad_token_id"}};
    for (const auto& [json, key] : cases) {
        const std::string message = message_of(json);
        EXPECT_NE(message.find(key), std::string::npos) << message;
        EXPECT_NE(message.find("config.json"), std::string::npos) << message;
    }
}

BertConfig config_of_text(const std::string& json) {
    const TemporaryFolder folder;
    folder.write("config.json", json);
    return read_bert_config(folder / "config.json");
}

TEST(BertConfigTest, ActivationsHaveTransformersNames) {
    using Activation = BertConfig::Activation;
    const std::pair<const char*, Activation> names[] = {
        {"gelu", Activation::gelu},
        {"gelu_python", Activation::gelu},
        {"gelu_new", Activation::gelu_tanh},
        {"gelu_pytorch_tanh", Activation::gelu_tanh},
        {"gelu_fast", Activation::gelu_tanh},
        {"relu", Activation::relu},
        {"silu", Activation::silu},
        {"swish", Activation::silu}};
    for (const auto& [name, activation] : names)
        EXPECT_EQ(config_of_text(R"({"hidden_act": ")" + std::string(name) + R"("})").activation,
                  activation)
            << name;
}

TEST(BertConfigTest, APadTokenMayBeNone) {
    const BertConfig config = config_of_text(R"({"pad_token_id": null})");

    EXPECT_EQ(config.pad_token_id, -1);
    EXPECT_EQ(config_of_text(to_json(config)).pad_token_id, -1);
}

TEST(BertConfigTest, ANullCountsAsAbsent) {
    EXPECT_EQ(message_of(R"({"vocab_size": null, "hidden_act": null})"), "accepted");
}

TEST(BertConfigTest, NoJsonIsBadData) {
    const TemporaryFolder folder;
    folder.write("config.json", "[1, 2");

    EXPECT_THROW(read_bert_config(folder / "config.json"), BadData);
}

TEST(BertConfigTest, AnUnknownNameIsAMissingFile) {
    EXPECT_THROW(bert_config("gigantic"), MissingInput);
}

}  // namespace
}  // namespace hetseq
