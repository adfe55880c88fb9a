#include "hetseq/model/transformer/transformer.hpp"

#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "model/formula.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using nlohmann::json;

using Pair = std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>;

const json& reference() {
    static const json root = json::parse(std::ifstream("tests/reference/transformer.json"));
    return root;
}

std::vector<Pair> reference_pairs() {
    return reference()["pairs"].get<std::vector<Pair>>();
}

TransformerConfig config_of(const json& values) {
    const json& sizes = reference()["sizes"];
    TransformerConfig config;
    config.source_vocab_size = config.target_vocab_size = sizes["vocabulary"];
    config.width = sizes["width"];
    config.inner_width = sizes["inner"];
    config.heads = sizes["heads"];
    config.encoder_layers = config.decoder_layers = sizes["layers"];
    config.max_positions = sizes["most"];
    config.dropout = 0;
    config.shared_embeddings = shared_embeddings_from_text(values["shared"], "the reference");
    config.positions = positions_from_text(values["positions"], "the reference");
    config.activation = values["activation"] == "relu" ? TransformerConfig::Activation::relu
                                                       : TransformerConfig::Activation::gelu;
    config.pre_norm = values["pre_norm"];
    return config;
}

TransformerConfig small() {
    return config_of(reference()["cases"]["post-norm"]["config"]);
}

at::Tensor padded(const std::vector<std::vector<std::int64_t>>& rows, std::size_t longest) {
    at::Tensor matrix =
        at::full({std::ssize(rows), static_cast<std::int64_t>(longest)}, 0, at::kLong);
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t k = 0; k < rows[i].size(); ++k)
            matrix[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(k)] = rows[i][k];
    return matrix;
}

// The pairs [begin, end), padded by at least `more` positions.
MicroBatch batch_of(const std::vector<Pair>& all,
                    std::size_t begin,
                    std::size_t end,
                    std::size_t more = 0) {
    std::vector<std::vector<std::int64_t>> sources, inputs;
    std::vector<std::int64_t> lengths, ids, labels, positions;
    std::size_t longest_source = 1, longest = 1;
    for (std::size_t i = begin; i < end; ++i) {
        longest_source = std::max(longest_source, all[i].first.size());
        longest = std::max(longest, all[i].second.size());
    }
    longest_source += more;
    longest += more;
    for (std::size_t i = begin; i < end; ++i) {
        const auto& [source, target] = all[i];
        sources.push_back(source);
        lengths.push_back(std::ssize(source));
        ids.push_back(static_cast<std::int64_t>(1000 + i));
        inputs.push_back({1});
        inputs.back().insert(inputs.back().end(), target.begin(), target.end() - 1);
        for (std::size_t k = 0; k < target.size(); ++k) {
            labels.push_back(target[k]);
            positions.push_back(static_cast<std::int64_t>((i - begin) * longest + k));
        }
    }
    MicroBatch batch;
    batch.tensors = {{"source", padded(sources, longest_source)},
                     {"source_lengths", at::tensor(lengths, at::kLong)},
                     {"target_input", padded(inputs, longest)},
                     {"labels", at::tensor(labels, at::kLong)},
                     {"positions", at::tensor(positions, at::kLong)}};
    batch.sample_ids = at::tensor(ids, at::kLong);
    return batch;
}

std::shared_ptr<Transformer> formula_model(const TransformerConfig& config,
                                           at::ScalarType type,
                                           double smoothing) {
    auto model = make_transformer(config, {.label_smoothing = smoothing});
    model->to(type);
    test::fill_by_formula(*model, "layer_norm.weight");
    return model;
}

// A view of the gradient as files hold the parameter.
at::Tensor gradient_of(Model& model, const std::string& name) {
    const auto parameters = model.named_parameters();
    for (const char* part : {"q", "k", "v"}) {
        const std::size_t at = name.find(std::string(part) + "_proj");
        if (at == std::string::npos)
            continue;
        const bool is_self = name.find("self_attn") != std::string::npos;
        if (!is_self && *part == 'q')
            continue;
        std::string fused = name;
        fused.replace(at, 1, is_self ? "qkv" : "kv");
        const std::string order = is_self ? "qkv" : "kv";
        return parameters[fused].grad().chunk(std::ssize(order), 0)[order.find(*part)];
    }
    return parameters[name].grad();
}

void expect_reference(const json& expected, at::ScalarType type, double tolerance) {
    const auto model = formula_model(
        config_of(expected["config"]), type, reference()["sizes"]["smoothing"].get<double>());
    double loss = 0;
    for (const auto& [begin, end] : {std::pair{0, 2}, {2, 5}}) {
        const ForwardResult result =
            model->forward(batch_of(reference_pairs(), static_cast<std::size_t>(begin), end), {});
        loss += result.losses.at(0).item<double>();
        result.losses.at(0).backward();
    }
    EXPECT_NEAR(loss / expected["loss"].get<double>(), 1, tolerance);
    for (const auto& [name, values] : expected["gradients"].items()) {
        const at::Tensor gradient = gradient_of(*model, name).to(at::kDouble);
        const double norm = values[0].get<double>();
        const double scale = tolerance * std::max(norm, 1e-3);
        EXPECT_NEAR(gradient.norm().item<double>(), norm, scale) << name;
        const at::Tensor direction = test::formula_uniform("along " + name, gradient.sizes());
        EXPECT_NEAR((gradient * direction).sum().item<double>(),
                    values[1].get<double>(),
                    scale * std::sqrt(static_cast<double>(gradient.numel())))
            << name;
    }
}

TEST(TransformerTest, LossAndGradientsAreThoseOfAnIndependentImplementation) {
    for (const auto& [name, expected] : reference()["cases"].items()) {
        SCOPED_TRACE(name);
        expect_reference(expected, at::kDouble, 1e-10);
        expect_reference(expected, at::kFloat, 2e-4);
    }
}

TEST(TransformerTest, MetricsAreThoseOfAnIndependentImplementation) {
    for (const auto& [name, expected] : reference()["cases"].items()) {
        SCOPED_TRACE(name);
        const auto model = formula_model(config_of(expected["config"]), at::kDouble, 0.1);
        const at::NoGradGuard no_grad;
        const ForwardResult result =
            model->forward(batch_of(reference_pairs(), 0, 5), {Mode::evaluate, 1, 0});
        EXPECT_NEAR(result.losses.at(0).item<double>(), expected["loss"].get<double>(), 1e-9);
        EXPECT_NEAR(result.metrics.at(0).item<double>(), expected["nll"].get<double>(), 1e-9);
        EXPECT_EQ(result.metrics.at(1).item<double>(), expected["correct"].get<double>());
    }
}

struct Gradients {
    double loss = 0;
    std::vector<at::Tensor> values;
};

Gradients gradients_of(Transformer& model,
                       const std::vector<std::pair<std::size_t, std::size_t>>& cuts,
                       std::size_t more) {
    Gradients result;
    for (auto& parameter : model.parameters())
        parameter.mutable_grad() = at::zeros_like(parameter);
    for (const auto& [begin, end] : cuts) {
        const ForwardResult forward =
            model.forward(batch_of(reference_pairs(), begin, end, more), {Mode::train, 7, 3});
        result.loss += forward.losses.at(0).item<double>();
        forward.losses.at(0).backward();
    }
    for (auto& parameter : model.parameters())
        result.values.push_back(parameter.grad());
    return result;
}

TEST(TransformerTest, NeitherCutsNorPaddingChangeGradientsWithEveryDropoutOn) {
    TransformerConfig config = small();
    config.dropout = 0.3;
    config.attention_dropout = 0.2;
    config.activation_dropout = 0.1;
    const auto model = formula_model(config, at::kDouble, 0.1);
    const Gradients whole = gradients_of(*model, {{0, 5}}, 0);
    const Gradients cut = gradients_of(*model, {{0, 1}, {1, 4}, {4, 4}, {4, 5}}, 0);
    const Gradients padded = gradients_of(*model, {{0, 2}, {2, 5}}, 3);

    EXPECT_NEAR(cut.loss / whole.loss, 1, 1e-13);
    EXPECT_NEAR(padded.loss / whole.loss, 1, 1e-13);
    for (std::size_t i = 0; i < whole.values.size(); ++i) {
        EXPECT_TRUE(at::allclose(cut.values[i], whole.values[i], 1e-11, 1e-12)) << i;
        EXPECT_TRUE(at::allclose(padded.values[i], whole.values[i], 1e-11, 1e-12)) << i;
    }
}

TEST(TransformerTest, EveryDropoutChangesTheLoss) {
    const double without =
        gradients_of(*formula_model(small(), at::kDouble, 0.1), {{0, 5}}, 0).loss;
    for (double TransformerConfig::*kind : {&TransformerConfig::dropout,
                                            &TransformerConfig::attention_dropout,
                                            &TransformerConfig::activation_dropout}) {
        TransformerConfig config = small();
        config.*kind = 0.5;
        EXPECT_GT(
            std::abs(gradients_of(*formula_model(config, at::kDouble, 0.1), {{0, 5}}, 0).loss -
                     without),
            1e-6);
    }
}

TEST(TransformerTest, AConfigurationSurvivesItsJson) {
    TransformerConfig config = small();
    config.pre_norm = true;
    config.activation = TransformerConfig::Activation::gelu;
    const auto path = std::filesystem::path(testing::TempDir()) / "transformer_config.json";
    std::ofstream(path) << to_json(config);
    EXPECT_EQ(to_json(read_transformer_config(path)), to_json(config));
}

TEST(TransformerTest, ConfigurationsThatDoNotFitAreRefused) {
    TransformerConfig odd = small();
    odd.heads = 3;
    EXPECT_THROW(make_transformer(odd), BadConfig);
    TransformerConfig unlike = small();
    unlike.target_vocab_size += 1;
    EXPECT_THROW(make_transformer(unlike), BadConfig);
    TransformerConfig without_words = transformer_config("transformer-tiny");
    EXPECT_THROW(make_transformer(without_words), BadConfig);
    EXPECT_THROW(make_transformer(small(), {.label_smoothing = 1.0}), BadConfig);
    EXPECT_THROW(transformer_config("enormous"), MissingInput);
}

}  // namespace
}  // namespace hetseq
