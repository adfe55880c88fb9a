// Layers that are computed again in backward: the same bits, with less memory.
#include "hetseq/model/recomputed.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <c10/core/Allocator.h>
#include <gtest/gtest.h>

#include "hetseq/data/loading/padded_rows.hpp"
#include "hetseq/model/autocast.hpp"
#include "hetseq/model/init.hpp"

#include "gpu.hpp"
#include "model/small_models.hpp"

namespace hetseq {
namespace {

using test::ModelCase, test::pairs, test::small_bert, test::small_transformer, test::texts;

// With what it says of the lengths of its rows, so that nothing is computed for padding.
MicroBatch packed_texts(std::int64_t begin, std::int64_t count) {
    MicroBatch batch = texts(begin, count);
    note_row_lengths(batch,
                     batch.tensors.at("attention_mask").to(at::kBool),
                     batch.tensors.at("masked_positions"));
    return batch;
}

std::shared_ptr<Model> pre_norm_transformer() {
    TransformerConfig config = transformer_config("tiny");
    config.source_vocab_size = config.target_vocab_size = 90;
    config.pre_norm = true;
    config.attention_dropout = config.activation_dropout = 0.2;
    return make_transformer(config, {});
}

at::Tensor loss_of(Model& model, const MicroBatch& batch) {
    at::Tensor sum;
    for (const at::Tensor& loss : run_forward(model, batch, {.seed = 5, .update = 2}).losses)
        sum = sum.defined() ? sum + loss : loss;
    return sum;
}

class RecomputedTest : public testing::TestWithParam<ModelCase> {
protected:
    RecomputedTest() : model_{GetParam().make()} { initialise_parameters(*model_, 3); }

    // The gradients of two micro-batches, with the first `layers` layers recomputed.
    std::map<std::string, at::Tensor> gradients(std::int64_t layers, at::Device device) {
        model_->recompute(layers);
        for (at::Tensor parameter : model_->parameters())
            parameter.mutable_grad().reset();
        loss_of(*model_, test::on(device, GetParam().batch(0, 3))).backward();
        loss_of(*model_, test::on(device, GetParam().batch(3, 5))).backward();
        std::map<std::string, at::Tensor> all;
        for (const auto& [name, parameter] : model_->named_parameters())
            all[name] = parameter.grad().defined() ? parameter.grad().clone() : at::Tensor{};
        return all;
    }

    // Counts of layers change no bit.
    void expect_same_bits(at::Device device, Precision precision) {
        model_->to(device, precision);
        const std::int64_t most = model_->recomputable_layers();
        const auto kept = gradients(0, device);
        ASSERT_GE(most, 2);
        for (const std::int64_t layers : {std::int64_t{1}, most - 1, most})
            for (const auto& [name, gradient] : gradients(layers, device)) {
                ASSERT_EQ(gradient.defined(), kept.at(name).defined()) << name;
                if (gradient.defined())
                    EXPECT_TRUE(gradient.equal(kept.at(name)))
                        << name << ", " << layers << " layers in " << to_string(precision);
            }
    }

    std::shared_ptr<Model> model_;
};

TEST_P(RecomputedTest, GivesTheSameBitsOnACpu) {
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp64})
        expect_same_bits(at::kCPU, precision);
}

TEST_P(RecomputedTest, GivesTheSameBitsOnAGpu) {
    HETSEQ_NEEDS_GPU();
    for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16})
        expect_same_bits(test::gpu(), precision);
}

// A bucket of gradients starts when each was told to be ready once.
TEST_P(RecomputedTest, EachParameterIsReadyOnce) {
    model_->recompute(model_->recomputable_layers());
    std::map<std::string, int> ready;
    for (const auto& [name, parameter] : model_->named_parameters())
        parameter.register_hook([&ready, name = name](const at::Tensor&) { ++ready[name]; });

    loss_of(*model_, GetParam().batch(0, 3)).backward();

    EXPECT_GT(ready.size(), 20U);
    for (const auto& [name, times] : ready)
        EXPECT_EQ(times, 1) << name;
}

TEST_P(RecomputedTest, FrozenParametersGetNoGradientAndOthersTheirs) {
    for (const auto& [name, parameter] : model_->named_parameters()) {
        at::Tensor own = parameter;
        const bool is_first =
            name.find("layer.0.") != name.npos || name.find("layers.0.") != name.npos;
        own.set_requires_grad(!is_first && name.find("embed") == name.npos &&
                              name.ends_with("bias"));
    }

    expect_same_bits(at::kCPU, Precision::fp32);
}

TEST_P(RecomputedTest, EvaluationComputesNothingAgain) {
    const auto evaluate = [&](std::int64_t layers) {
        model_->recompute(layers);
        return run_forward(*model_, GetParam().batch(0, 3), {.mode = Mode::evaluate}).losses[0];
    };

    EXPECT_TRUE(evaluate(0).equal(evaluate(model_->recomputable_layers())));
}

// The bytes that LibTorch's allocator on the CPU gave out since this was made, less what came back.
class LiveBytes final : public c10::MemoryReportingInfoBase {
public:
    void reportMemoryUsage(
        void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
        bytes_ += size;
    }
    bool memoryProfilingEnabled() const override { return true; }
    std::int64_t bytes() const noexcept { return bytes_; }

private:
    std::int64_t bytes_ = 0;
};

TEST_P(RecomputedTest, ForwardKeepsLess) {
    const MicroBatch batch = GetParam().batch(0, 8);
    const auto kept_bytes = [&](std::int64_t layers) {
        model_->recompute(layers);
        const auto live = std::make_shared<LiveBytes>();
        const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
        const at::Tensor loss = loss_of(*model_, batch);
        return live->bytes();
    };

    const std::int64_t most = model_->recomputable_layers();
    EXPECT_LT(kept_bytes(1), kept_bytes(0));
    EXPECT_LT(kept_bytes(most), kept_bytes(1));
    EXPECT_LT(kept_bytes(most), kept_bytes(0) / 2);
}

INSTANTIATE_TEST_SUITE_P(Models,
                         RecomputedTest,
                         testing::Values(ModelCase{"Bert", small_bert, texts},
                                         ModelCase{"BertWithoutPadding", small_bert, packed_texts},
                                         ModelCase{"Transformer", small_transformer, pairs},
                                         ModelCase{"PreNorm", pre_norm_transformer, pairs}),
                         test::name_of);

// Memory that runs out when a layer is computed again is told as elsewhere.
TEST(RecomputedLayerTest, WhatItThrowsInBackwardIsThrownThere) {
    const at::Tensor x = at::ones({3}).requires_grad_();
    int runs = 0;
    const auto outputs = recomputed({x}, false, [&](const std::vector<at::Tensor>& inputs) {
        if (++runs == 2)
            throw std::bad_alloc();
        return std::vector<at::Tensor>{inputs.front() * 2};
    });

    EXPECT_THROW(outputs.front().sum().backward(), std::bad_alloc);
    EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace hetseq
