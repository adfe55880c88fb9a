#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include "hetseq/data/loading/collator.hpp"
#include "hetseq/data/loading/padded_rows.hpp"
#include "hetseq/data/schema.hpp"
#include "hetseq/model/dropout.hpp"
#include "hetseq/model/model.hpp"

#include "model/linear_layer.hpp"

/// A small model of pairs of sentences of unequal length.
namespace hetseq::test {

constexpr std::int64_t words = 200;  // of the vocabulary; 0 stands for what is before a sentence

/// Attention over the source, whose mean tells of the target's words what it can.
/// Input: "source" (n, S), "source_mask" (n, S) bool, "before" (n, T), "target" (n, T) int64, -100
/// for padding.
class PairModel final : public Model {
public:
    PairModel(std::int64_t width, double dropout) : dropout_{dropout} {
        embedding_ = register_parameter("embedding", at::empty({words, width}));
        query_ = register_module("query", std::make_shared<LinearLayer>(width, width));
        hidden_ = register_module("hidden", std::make_shared<LinearLayer>(width, 4 * width));
        out_ = register_module("out", std::make_shared<LinearLayer>(4 * width, words));
    }

    std::vector<std::string> loss_terms() const override { return {"nll"}; }
    std::vector<MetricSchema> metrics() const override { return {{"accuracy", 0}}; }

    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        const at::Tensor logits = logits_of(batch, context).flatten(0, 1);
        const at::Tensor target = batch.tensors.at("target").flatten();
        ForwardResult result;
        result.losses = {at::cross_entropy_loss(logits, target, {}, at::Reduction::Sum)};
        if (context.mode == Mode::evaluate)
            result.metrics = {(logits.argmax(1) == target).sum()};
        return result;
    }

    /// The likeliest "words" int32 of each target, as long as it, and the "largest" score (n)
    /// float32 of each sample.
    bool predicts() const override { return true; }
    std::vector<Prediction> predict(const MicroBatch& batch) override {
        const at::Tensor logits = logits_of(batch, {.mode = Mode::evaluate});
        const at::Tensor is_word = batch.tensors.at("target") != -100;  // (n, T)
        return {{"words", logits.argmax(2).masked_select(is_word).to(at::kInt), is_word.sum(1)},
                {"largest", logits.amax(2).masked_fill(~is_word, -1e30).amax(1).to(at::kFloat)}};
    }

private:
    /// (n, T, words)
    at::Tensor logits_of(const MicroBatch& batch, const ForwardContext& context) {
        const at::Tensor mask = batch.tensors.at("source_mask");  // (n, S)
        const at::Tensor source = at::embedding(embedding_, batch.tensors.at("source"));
        const at::Tensor scores = at::matmul(query_->forward(source), source.transpose(1, 2));
        const at::Tensor attention = at::softmax(scores.masked_fill(~mask.unsqueeze(1), -1e30), -1);
        const at::Tensor seen = at::matmul(attention, source) * mask.unsqueeze(2);
        const at::Tensor counts = mask.sum(1, true).clamp_min(1);
        const at::Tensor told = (seen.sum(1) / counts).unsqueeze(1);  // (n, 1, H)
        at::Tensor state = at::gelu(
            hidden_->forward(at::embedding(embedding_, batch.tensors.at("before")) + told));
        if (context.mode == Mode::train)
            state = counter_dropout(
                state.contiguous(), dropout_, {context.seed, context.update, 1}, batch.sample_ids);
        return out_->forward(state);
    }

    double dropout_;
    at::Tensor embedding_;
    std::shared_ptr<LinearLayer> query_, hidden_, out_;
};

class PairCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor&) const override {
        const at::Tensor lengths = row_lengths(rows, "source");
        const at::Tensor source = padded_rows(rows, "source", 0, 1).to(at::kLong);
        const at::Tensor target = padded_rows(rows, "target", -100, 1).to(at::kLong);
        MicroBatch batch;
        batch.tensors["source"] = source;
        batch.tensors["source_mask"] =
            at::arange(source.size(1)).unsqueeze(0) < lengths.unsqueeze(1);
        batch.tensors["target"] = target;
        batch.tensors["before"] = at::constant_pad_nd(target.clamp_min(0), {1, 0})
                                      .narrow(1, 0, target.size(1))
                                      .contiguous();
        batch.weights = {static_cast<double>(rows.at("target").numel())};
        return batch;
    }
};

inline CorpusSchema pair_schema() {
    const auto sentence = [](const std::string& name) {
        return FieldSchema{.name = name,
                           .type = ElementType::int32,
                           .is_ragged = true,
                           .minimum = 0,
                           .maximum = words - 1};
    };
    return {.kind = "pairs of sentences",
            .fields = {sentence("source"), sentence("target")},
            .units_field = "target"};
}

}  // namespace hetseq::test
