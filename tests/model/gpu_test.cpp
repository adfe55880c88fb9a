// Models and their dropout on a GPU against the same on the CPU.
#include "gpu.hpp"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "hetseq/model/bert/bert.hpp"
#include "hetseq/model/coordinate_dropout.hpp"
#include "hetseq/model/dropout.hpp"
#include "hetseq/model/mnist_cnn.hpp"
#include "hetseq/model/transformer/transformer.hpp"

#include "model/formula.hpp"
#include "model/image_batch.hpp"

namespace hetseq {
namespace {

using test::gpu;

MicroBatch on_gpu(const MicroBatch& batch) {
    MicroBatch moved = batch;
    for (auto& [name, tensor] : moved.tensors)
        tensor = tensor.to(gpu());
    moved.sample_ids = batch.sample_ids.to(gpu());
    return moved;
}

MicroBatch text_batch(std::int64_t n, std::int64_t length, std::int64_t vocabulary) {
    at::manual_seed(6);
    const at::Tensor lengths = at::arange(length - n + 1, length + 1, at::kLong).unsqueeze(1);
    MicroBatch batch;
    batch.tensors = {
        {"input_ids", at::randint(vocabulary, {n, length}, at::kLong)},
        {"segment_ids", at::randint(2, {n, length}, at::kLong)},
        {"attention_mask", (at::arange(length, at::kLong).unsqueeze(0) < lengths).to(at::kLong)},
        {"masked_positions", at::arange(n, at::kLong) * length + 3},
        {"masked_labels", at::randint(vocabulary, {n}, at::kLong)},
        {"next_sentence_labels", at::randint(2, {n}, at::kLong)}};
    batch.sample_ids = at::arange(40, 40 + n, at::kLong);
    batch.samples = batch.units = n;
    return batch;
}

struct Results {
    std::vector<double> losses, metrics;
    std::vector<at::Tensor> gradients;  // on the CPU
};

std::vector<at::Tensor> trained_parameters(const Model& model) {
    std::vector<at::Tensor> trained = model.parameters();
    std::erase_if(trained, [](const at::Tensor& parameter) { return !parameter.requires_grad(); });
    return trained;
}

// Losses and gradients with dropout, metrics without.
Results results_of(Model& model, const MicroBatch& batch) {
    Results results;
    at::Tensor sum;
    for (const at::Tensor& loss : model.forward(batch, {Mode::train, 3, 11}).losses) {
        results.losses.push_back(loss.item<double>());
        sum = sum.defined() ? sum + loss : loss;
    }
    for (const at::Tensor& gradient : torch::autograd::grad({sum},
                                                            trained_parameters(model),
                                                            {},
                                                            /*retain_graph=*/false,
                                                            /*create_graph=*/false,
                                                            true))
        results.gradients.push_back(gradient.defined() ? gradient.cpu() : at::Tensor());
    const at::NoGradGuard no_grad;
    for (const at::Tensor& metric : model.forward(batch, {Mode::evaluate, 3, 11}).metrics)
        results.metrics.push_back(metric.to(at::kDouble).item<double>());
    return results;
}

void expect_same(const Results& gpu_results, const Results& cpu_results) {
    for (std::size_t j = 0; j < cpu_results.losses.size(); ++j)
        EXPECT_NEAR(gpu_results.losses[j] / cpu_results.losses[j], 1, 1e-10) << j;
    ASSERT_EQ(gpu_results.metrics.size(), cpu_results.metrics.size());
    for (std::size_t j = 0; j < cpu_results.metrics.size(); ++j)
        EXPECT_NEAR(gpu_results.metrics[j], cpu_results.metrics[j], 1e-10 * cpu_results.metrics[j])
            << j;
    ASSERT_EQ(gpu_results.gradients.size(), cpu_results.gradients.size());
    for (std::size_t i = 0; i < cpu_results.gradients.size(); ++i) {
        ASSERT_EQ(gpu_results.gradients[i].defined(), cpu_results.gradients[i].defined()) << i;
        if (cpu_results.gradients[i].defined()) {
            EXPECT_TRUE(gpu_results.gradients[i].allclose(cpu_results.gradients[i], 1e-9, 1e-10))
                << i;
        }
    }
}

class ModelOnGpuTest : public testing::Test {
protected:
    void SetUp() override { HETSEQ_NEEDS_GPU(); }

    static void expect_same_on_both(Model& model, const MicroBatch& batch) {
        model.to(at::kDouble);
        test::fill_by_formula(model);
        const Results on_cpu = results_of(model, batch);
        model.to(gpu(), at::kDouble);
        expect_same(results_of(model, on_gpu(batch)), on_cpu);
    }
};

using DropoutOnGpuTest = ModelOnGpuTest;

TEST_F(DropoutOnGpuTest, HasTheBitsOfTheCpu) {
    const DropoutKey key{0x123456789ABCDEF0u, 77, 5};
    const at::Tensor ids = at::tensor({std::int64_t{7}, (std::int64_t{1} << 40) + 3});
    for (const auto type : {at::kFloat, at::kDouble})
        for (const std::int64_t width : {1, 7, 8, 127, 128, 129, 1000}) {
            at::manual_seed(1);
            const at::Tensor x = at::randn({2, 3, width}, type);

            const at::Tensor on_cpu = counter_dropout(x, 0.25, key, ids);
            const at::Tensor dropped = counter_dropout(x.to(gpu()), 0.25, key, ids.to(gpu()));

            EXPECT_TRUE(dropped.device() == gpu());
            EXPECT_TRUE(dropped.cpu().equal(on_cpu)) << type << ", " << width;
        }
}

TEST_F(DropoutOnGpuTest, KeyedByCoordinatesItHasTheBitsOfTheCpu) {
    const DropoutKey key{0x123456789ABCDEF0u, 77, 0};
    const at::Tensor ids = at::tensor({std::int64_t{7}, (std::int64_t{1} << 40) + 3});
    for (const auto type : {at::kFloat, at::kDouble})
        for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{
                 {2, 9, 130}, {2, 3, 40, 1}, {2, 2, 3, 17, 33}}) {
            at::manual_seed(1);
            const at::Tensor x = at::randn(shape, type);

            const at::Tensor on_cpu = coordinate_dropout(x, 0.25, key, ids);
            const at::Tensor dropped = coordinate_dropout(x.to(gpu()), 0.25, key, ids.to(gpu()));

            EXPECT_TRUE(dropped.device() == gpu());
            EXPECT_TRUE(dropped.cpu().equal(on_cpu)) << type << ", " << at::IntArrayRef{shape};
        }
}

TEST_F(DropoutOnGpuTest, ItsBackwardHasTheBitsOfTheCpu) {
    const DropoutKey key{1, 2, 3};
    const at::Tensor ids = at::arange(4, at::kLong);
    const at::Tensor weights = at::randn({4, 300}, at::kDouble);
    const auto gradient_on = [&](at::Device device) {
        const at::Tensor x = at::ones({4, 300}, weights.options().device(device)).requires_grad_();
        (counter_dropout(x, 0.5, key, ids.to(device)) * weights.to(device)).sum().backward();
        return x.grad().cpu();
    };

    EXPECT_TRUE(gradient_on(gpu()).equal(gradient_on(at::kCPU)));
}

TEST_F(ModelOnGpuTest, MnistCnnGivesWhatItGivesOnTheCpu) {
    expect_same_on_both(*make_mnist_cnn(), test::image_batch(7));
}

TEST_F(ModelOnGpuTest, BertTinyGivesWhatItGivesOnTheCpu) {
    const BertConfig config = bert_config("tiny");

    expect_same_on_both(*make_bert(config), text_batch(5, 24, config.vocab_size));
}

// A kernel that gives several gradients is asked for some of them.
TEST_F(ModelOnGpuTest, BertWithFrozenBiasesOrWeightsGivesWhatItGivesOnTheCpu) {
    const BertConfig config = bert_config("tiny");
    for (const char* const frozen : {"bias", "weight"}) {
        const auto model = make_bert(config);
        for (const NamedTensor& parameter : model->named_parameters())
            if (parameter.name.ends_with(frozen))
                parameter.tensor.set_requires_grad(false);

        expect_same_on_both(*model, text_batch(5, 24, config.vocab_size));
    }
}

MicroBatch sentence_pairs(std::int64_t n, std::int64_t length, std::int64_t vocabulary) {
    at::manual_seed(7);
    MicroBatch batch;
    batch.tensors = {{"source", at::randint(3, vocabulary, {n, length}, at::kLong)},
                     {"source_lengths", at::arange(length - n + 1, length + 1, at::kLong)},
                     {"target_input", at::randint(3, vocabulary, {n, length + 2}, at::kLong)},
                     {"positions", at::arange(0, n * (length + 2), 3, at::kLong)}};
    batch.tensors["labels"] =
        at::randint(3, vocabulary, {batch.tensors.at("positions").numel()}, at::kLong);
    batch.sample_ids = at::arange(40, 40 + n, at::kLong);
    batch.samples = n;
    batch.units = batch.tensors.at("labels").numel();
    return batch;
}

TEST_F(ModelOnGpuTest, TransformersGiveWhatTheyGiveOnTheCpu) {
    TransformerConfig post_norm = transformer_config("tiny");
    post_norm.source_vocab_size = post_norm.target_vocab_size = 40;
    post_norm.encoder_layers = post_norm.decoder_layers = 2;
    post_norm.attention_dropout = 0.1;
    TransformerConfig learned = post_norm, pre_norm = post_norm;
    learned.positions = TransformerConfig::Positions::learned;
    learned.activation = TransformerConfig::Activation::gelu;
    pre_norm.pre_norm = true;
    pre_norm.attention_dropout = 0;

    for (const TransformerConfig& config : {post_norm, learned, pre_norm})
        expect_same_on_both(*make_transformer(config, {.label_smoothing = 0.1}),
                            sentence_pairs(4, 9, 40));
}

}  // namespace
}  // namespace hetseq
