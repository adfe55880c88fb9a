#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/model/decoding/translator.hpp"
#include "hetseq/model/transformer/transformer.hpp"

#include "model/decoding/decoder_model.hpp"
#include "model/formula.hpp"

namespace hetseq {
namespace {

using Shared = TransformerConfig::SharedEmbeddings;
using Positions = TransformerConfig::Positions;
using Activation = TransformerConfig::Activation;

TransformerConfig small_config() {
    TransformerConfig config;
    config.source_vocab_size = config.target_vocab_size = 101;
    config.width = 24;
    config.inner_width = 40;
    config.heads = 3;
    config.encoder_layers = 2;
    config.decoder_layers = 3;
    config.max_positions = 40;
    return config;
}

/// Every kind of network, and widths that fill no whole vectors.
std::vector<TransformerConfig> configs() {
    std::vector<TransformerConfig> all(5, small_config());
    all[1].pre_norm = true;
    all[1].positions = Positions::learned;
    all[2].shared_embeddings = Shared::decoder;
    all[2].source_vocab_size = 57;
    all[2].activation = Activation::gelu;
    all[3].shared_embeddings = Shared::none;
    all[3].pre_norm = true;
    all[3].width = 32;
    all[3].heads = 1;
    all[4].width = 14;
    all[4].heads = 7;
    all[4].target_vocab_size = all[4].source_vocab_size = 3000;
    return all;
}

std::shared_ptr<Transformer> formula_transformer(const TransformerConfig& config,
                                                 at::ScalarType type) {
    auto model = make_transformer(config);
    model->to(type);
    test::fill_by_formula(*model, "layer_norm.weight");
    const at::NoGradGuard no_grad;
    for (auto& [name, tensor] : model->stored_tensors())
        tensor.mul_(name.find("norm") == std::string::npos ? 5 : 1);
    return model;
}

std::vector<Source> sources_of(const TransformerConfig& config, std::size_t count) {
    std::vector<Source> sources;
    std::uint32_t state = 12345;
    for (std::size_t i = 0; i < count; ++i) {
        Source source;
        for (std::size_t at = 0; at < (7 * i + 3) % 29; ++at) {
            state = state * 1664525u + 1013904223u;
            source.push_back(static_cast<std::int32_t>(
                3 + (state >> 8) % static_cast<std::uint32_t>(config.source_vocab_size - 3)));
        }
        source.push_back(2);
        sources.push_back(source);
    }
    return sources;
}

/// -log p of `tokens` behind `before`, each by a whole forward pass.
std::vector<double> costs_of(Transformer& model,
                             const Source& source,
                             const std::vector<std::int32_t>& before,
                             const std::vector<std::int32_t>& tokens) {
    const at::NoGradGuard no_grad;
    std::vector<double> costs;
    for (const std::int32_t token : tokens) {
        const auto length = static_cast<std::int64_t>(before.size());
        MicroBatch batch;
        batch.tensors = {
            {"source", at::tensor(at::ArrayRef<std::int32_t>(source), at::kLong).unsqueeze(0)},
            {"source_lengths", at::tensor({static_cast<std::int64_t>(source.size())}, at::kLong)},
            {"target_input",
             at::tensor(at::ArrayRef<std::int32_t>(before), at::kLong).unsqueeze(0)},
            {"positions", at::tensor({length - 1}, at::kLong)},
            {"labels", at::tensor({static_cast<std::int64_t>(token)}, at::kLong)}};
        batch.sample_ids = at::zeros({1}, at::kLong);
        batch.samples = 1;
        costs.push_back(model.forward(batch, {Mode::evaluate}).losses.front().item<double>());
    }
    return costs;
}

struct RowState {
    std::size_t sentence;
    std::vector<std::int32_t> tokens;
};

/// Walks through a search tree that reorders, drops and doubles hypotheses, and compares all that a
/// decoder says with whole forward passes.
void expect_forward_pass(DecoderModel& decoder_model, Transformer& model) {
    const std::vector<Source> sources = sources_of(model.config(), 4);
    const std::unique_ptr<StepDecoder> decoder = decoder_model.start(sources);
    std::vector<RowState> states;
    std::vector<DecoderRow> rows;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        states.push_back({i, {1}});
        rows.push_back({static_cast<std::int32_t>(i), 1});
    }
    for (int step = 0; step < 9; ++step) {
        Candidates candidates;
        decoder->step(rows, {4, step % 2 == 0, 0.25}, candidates);
        std::vector<RowState> next_states;
        rows.clear();
        for (std::size_t row = 0; row < states.size(); ++row) {
            const RowState& state = states[row];
            const std::vector<std::int32_t> tokens(candidates.tokens.begin() + 4 * row,
                                                   candidates.tokens.begin() + 4 * row + 4);
            const auto costs = costs_of(model, sources[state.sentence], state.tokens, tokens);
            for (std::size_t i = 0; i < tokens.size(); ++i)
                EXPECT_NEAR(candidates.log_probabilities[4 * row + i],
                            -costs[i] - (tokens[i] == 0 ? 0.25 : 0),
                            1e-12)
                    << "step " << step << " row " << row << " token " << tokens[i];
            EXPECT_NEAR(candidates.end[row],
                        -costs_of(model, sources[state.sentence], state.tokens, {2})[0],
                        1e-12);
            // Sentence 1 ends early; rows of the others branch and die in turns.
            if (state.sentence == 1 && step == 3)
                continue;
            const std::size_t branches = (row + static_cast<std::size_t>(step)) % 3;
            const bool is_last =
                row + 1 == states.size() || states[row + 1].sentence != state.sentence;
            const bool has_rows =
                !next_states.empty() && next_states.back().sentence == state.sentence;
            for (std::size_t i = 0; i < branches || (is_last && !has_rows && i == 0); ++i) {
                next_states.push_back(state);
                next_states.back().tokens.push_back(tokens[i]);
                rows.push_back({static_cast<std::int32_t>(row), tokens[i]});
            }
        }
        states = std::move(next_states);
    }
}

TEST(DecoderTest, LoopsOnTheCpuEqualTheWholeForwardPass) {
    for (const TransformerConfig& config : configs()) {
        const auto model = formula_transformer(config, at::kDouble);

        expect_forward_pass(*detail::make_cpu_decoder(config, model->weights()), *model);
    }
}

TEST(DecoderTest, OperatorsEqualTheWholeForwardPass) {
    for (const TransformerConfig& config : configs()) {
        const auto model = formula_transformer(config, at::kDouble);

        expect_forward_pass(*detail::make_tensor_decoder(config, model->weights()), *model);
    }
}

void expect_same(const std::vector<std::vector<Hypothesis>>& a,
                 const std::vector<std::vector<Hypothesis>>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(a[i].size(), b[i].size());
        for (std::size_t j = 0; j < a[i].size(); ++j) {
            EXPECT_EQ(a[i][j].tokens, b[i][j].tokens) << i;
            EXPECT_EQ(a[i][j].score, b[i][j].score) << i;
        }
    }
}

TEST(TranslatorTest, BatchAndThreadsChangeNoBits) {
    const BeamOptions options{.beam = 5, .hypotheses = 5, .length_factor = 1, .length_constant = 5};
    for (const at::ScalarType type : {at::kFloat, at::kDouble})
        for (const TransformerConfig& config : configs()) {
            Translator translator(*formula_transformer(config, type));
            const std::vector<Source> sources = sources_of(config, 23);
            const auto together = translator.translate(sources, options);

            std::vector<std::vector<Hypothesis>> apart;
            for (const Source& source : sources)
                apart.push_back(translator.translate({&source, 1}, options).front());
            expect_same(together, apart);

            const int threads = at::get_num_threads();
            at::set_num_threads(3);
            expect_same(together, translator.translate(sources, options));
            at::set_num_threads(threads);
        }
}

TEST(TranslatorTest, SingleAndDoublePrecisionAgree) {
    const TransformerConfig config = small_config();
    const BeamOptions options{.beam = 4, .length_constant = 20};
    const std::vector<Source> sources = sources_of(config, 20);

    const auto single =
        Translator(*formula_transformer(config, at::kFloat)).translate(sources, options);
    const auto exact =
        Translator(*formula_transformer(config, at::kDouble)).translate(sources, options);

    for (std::size_t i = 0; i < sources.size(); ++i)
        EXPECT_NEAR(single[i][0].score, exact[i][0].score, 1e-4 * std::abs(exact[i][0].score));
}

TEST(TranslatorTest, EmptyBatchGivesNothing) {
    Translator translator(*formula_transformer(small_config(), at::kFloat));

    EXPECT_TRUE(translator.translate({}, {}).empty());
}

}  // namespace
}  // namespace hetseq
