#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/zeros.h>

#include "hetseq/data/loading/collator.hpp"
#include "hetseq/data/schema.hpp"
#include "hetseq/model/dropout.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/model/recomputed.hpp"

#include "model/linear_layer.hpp"

namespace hetseq::test {

/// A small model with everything that makes data parallelism hard: a tied parameter, one that is
/// never used, one that only some samples use, two loss terms with weights of their own, and
/// dropout. Its hidden layer can be recomputed.
///
/// Input: "tokens" (n, T) int64 in [0, 20), 0 is padding; "labels" (n) int64 in [0, 4).
class ToyModel : public Model {
public:
    static constexpr std::int64_t vocabulary = 20;
    static constexpr std::int64_t width = 8;
    static constexpr std::int64_t classes = 4;

    /// A test's change to a forward pass: it throws, or it changes the losses.
    using Spoil =
        std::function<void(const MicroBatch&, const ForwardContext&, ForwardResult& result)>;

    /// `stretch`: the embedding has as many times the rows, of which tokens use every `stretch`th.
    explicit ToyModel(double dropout, std::int64_t stretch = 1)
        : dropout_{dropout}, stretch_{stretch} {
        embedding_ = register_parameter("embedding", at::empty({stretch * vocabulary, width}));
        hidden_ = register_module("hidden", std::make_shared<LinearLayer>(width, width));
        rare_ = register_module("rare", std::make_shared<LinearLayer>(width, width));
        unused_ = register_parameter("unused", at::empty({3}));
        classifier_ = register_module("classifier", std::make_shared<LinearLayer>(width, classes));
    }

    std::vector<std::string> loss_terms() const override { return {"token", "label"}; }
    std::vector<MetricSchema> metrics() const override {
        return {{"token_accuracy", 0}, {"label_accuracy", 1}};
    }

    std::vector<PerplexitySchema> perplexities() const override {
        return {{"token_perplexity", "token"}};
    }

    InitialDistribution initial_distribution(const std::string& name) const override {
        if (name == "embedding")
            return {InitialDistribution::Kind::normal, 0.5};
        if (name == "unused")
            return {InitialDistribution::Kind::constant, 1};
        return Model::initial_distribution(name);
    }

    void set_spoil(Spoil spoil) { spoil_ = std::move(spoil); }
    /// From now on training adds up the ids of samples beside gradients; `take` gets each sum.
    void sum_ids(std::function<void(double)> take) {
        sums_ = at::zeros({1}, at::kDouble);
        take_ = std::move(take);
    }
    at::Tensor update_sums() const override { return sums_; }
    void take_update_sums() override {
        if (take_)
            take_(sums_.item<double>());
    }
    std::int64_t forwards() const noexcept { return forwards_; }  // so far

    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        ++forwards_;
        if (sums_.defined() && context.mode == Mode::train)
            sums_ += batch.sample_ids.sum().to(at::kDouble);
        const at::Tensor tokens = batch.tensors.at("tokens") * stretch_;
        const at::Tensor labels = batch.tensors.at("labels");
        const at::Tensor state = hidden_state(tokens, batch.sample_ids, context);
        const at::Tensor rows = at::nonzero(labels == 3).squeeze(1);
        at::Tensor pooled = state.mean(1);  // (n, H)
        if (rows.numel() > 0)
            pooled = pooled.index_add(0, rows, rare_->forward(pooled.index_select(0, rows)));

        const at::Tensor token_logits = at::matmul(state, embedding_.t()).flatten(0, 1);
        const at::Tensor targets = tokens.roll(-1, 1).flatten();
        const at::Tensor label_logits = classifier_->forward(pooled);
        ForwardResult result;
        result.losses = {at::cross_entropy_loss(
                             token_logits, targets, {}, at::Reduction::Sum, /*ignore_index=*/0),
                         at::cross_entropy_loss(label_logits, labels, {}, at::Reduction::Sum)};
        if (context.mode == Mode::evaluate)
            result.metrics = {((token_logits.argmax(1) == targets) & (targets != 0)).sum(),
                              (label_logits.argmax(1) == labels).sum()};
        if (spoil_)
            spoil_(batch, context, result);
        return result;
    }

    std::int64_t recomputable_layers() const override { return 1; }

private:
    // (n, T, H)
    at::Tensor hidden_state(const at::Tensor& tokens,
                            const at::Tensor& sample_ids,
                            const ForwardContext& context) {
        const auto layer = [this, sample_ids, context](const std::vector<at::Tensor>& inputs) {
            const at::Tensor state = at::gelu(hidden_->forward(inputs.front()));
            return std::vector<at::Tensor>{
                context.mode == Mode::train
                    ? counter_dropout(
                          state, dropout_, {context.seed, context.update, 1}, sample_ids)
                    : state};
        };
        const std::vector<at::Tensor> inputs{at::embedding(embedding_, tokens)};
        return (recomputed_layers() > 0 ? recomputed(inputs, true, layer) : layer(inputs)).front();
    }

    double dropout_;
    std::int64_t stretch_;
    Spoil spoil_;
    std::int64_t forwards_ = 0;
    at::Tensor sums_;  // (1); undefined: nothing is summed beside gradients
    std::function<void(double)> take_;
    at::Tensor embedding_, unused_;
    std::shared_ptr<LinearLayer> hidden_, rare_, classifier_;
};

/// Rows of "tokens" and "labels" as they are; the terms' weights are the tokens that are no
/// padding, and the samples.
class ToyCollator : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const override {
        MicroBatch batch;
        batch.tensors["tokens"] = rows.at("tokens").to(at::kLong);
        batch.tensors["labels"] = rows.at("labels").to(at::kLong);
        batch.weights = {at::count_nonzero(batch.tensors["tokens"]).item<double>(),
                         static_cast<double>(sample_ids.numel())};
        return batch;
    }
};

/// As of data without targets for these terms.
class WeightlessCollator final : public ToyCollator {
public:
    explicit WeightlessCollator(std::vector<std::size_t> terms) : terms_{std::move(terms)} {}

    MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const override {
        MicroBatch batch = ToyCollator::collate(rows, sample_ids);
        for (const std::size_t term : terms_)
            batch.weights[term] = 0;
        return batch;
    }

private:
    std::vector<std::size_t> terms_;
};

inline CorpusSchema toy_schema() {
    return {.kind = "toy",
            .fields = {{.name = "labels",
                        .rank = 1,
                        .type = ElementType::uint8,
                        .row_shape = {},
                        .minimum = 0,
                        .maximum = 3},
                       {.name = "tokens",
                        .rank = 2,
                        .type = ElementType::uint8,
                        .row_shape = {-1},
                        .minimum = 0,
                        .maximum = 19}}};
}

}  // namespace hetseq::test
