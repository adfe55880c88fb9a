#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "hetseq/util/error.hpp"

#include "decoder_model.hpp"
#include "model/transformer_ops.hpp"

namespace hetseq::detail {

namespace {

constexpr std::int64_t unknown_id = 0;

/// Keys and values of a layer, side by side: (rows, positions, 2H).
using KeyValue = at::Tensor;

class TensorStepDecoder final : public StepDecoder {
public:
    TensorStepDecoder(const TransformerConfig& config,
                      const TransformerWeights& weights,
                      std::span<const Source> sources);

    void step(std::span<const DecoderRow> rows,
              const CandidateRule& rule,
              Candidates& candidates) override;

private:
    at::Tensor embed(const at::Tensor& ids,
                     const at::Tensor& table,
                     const at::Tensor& positions) const;
    at::Tensor normalised(const at::Tensor& x, const Affine& norm) const;
    at::Tensor attend(const at::Tensor& query,
                      const KeyValue& key_value,
                      const AttentionMask& mask,
                      const Affine& output) const;
    at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& part) const;
    /// x and a part of a layer of it, normalised before or behind.
    template <class Part>
    at::Tensor around(const at::Tensor& x, const Affine& norm, const Part& part) const;

    at::Tensor encode(std::span<const Source> sources);  // (n, S, H)
    void regroup(std::span<const DecoderRow> rows);
    at::Tensor decode(const at::Tensor& tokens);  // (rows, 1) to (rows, H)
    void choose(const at::Tensor& scores, const CandidateRule& rule, Candidates& candidates) const;
    /// int64 on the parameters' device.
    at::Tensor on_device(const std::vector<std::int64_t>& values) const;

    const TransformerConfig& config_;
    const TransformerWeights& weights_;
    std::vector<KeyValue> encoded_;  // by layer, (n, S, 2H)
    at::Tensor encoded_mask_;        // (n, S) bool
    std::vector<KeyValue> source_;   // by layer, (rows, S, 2H)
    at::Tensor source_mask_;         // (rows, S) bool
    std::vector<KeyValue> own_;      // by layer, (rows, position_, 2H)
    std::vector<std::int64_t> sentence_of_row_;
    std::int64_t position_ = 0;
};

TensorStepDecoder::TensorStepDecoder(const TransformerConfig& config,
                                     const TransformerWeights& weights,
                                     std::span<const Source> sources)
    : config_{config}, weights_{weights} {
    for (std::size_t i = 0; i < sources.size(); ++i)
        sentence_of_row_.push_back(static_cast<std::int64_t>(i));
    if (sources.empty())
        return;
    const at::Tensor memory = encode(sources);
    for (const DecoderLayerWeights& layer : weights_.decoder)
        encoded_.push_back(
            at::linear(memory, layer.cross.key_value.weight, layer.cross.key_value.bias));
}

at::Tensor TensorStepDecoder::on_device(const std::vector<std::int64_t>& values) const {
    return at::tensor(values, at::kLong).to(weights_.output_table.device());
}

at::Tensor TensorStepDecoder::embed(const at::Tensor& ids,
                                    const at::Tensor& table,
                                    const at::Tensor& positions) const {
    return at::embedding(table, ids) * std::sqrt(static_cast<double>(config_.width)) + positions;
}

at::Tensor TensorStepDecoder::normalised(const at::Tensor& x, const Affine& norm) const {
    return at::layer_norm(
        x, norm.weight.sizes(), norm.weight, norm.bias, TransformerWeights::norm_eps);
}

template <class Part>
at::Tensor TensorStepDecoder::around(const at::Tensor& x,
                                     const Affine& norm,
                                     const Part& part) const {
    if (config_.pre_norm)
        return x + part(normalised(x, norm));
    return normalised(x + part(x), norm);
}

at::Tensor TensorStepDecoder::attend(const at::Tensor& query,
                                     const KeyValue& key_value,
                                     const AttentionMask& mask,
                                     const Affine& output) const {
    const at::Tensor seen = attention(query, key_value, config_.heads, mask, {}, {});
    return at::linear(seen, output.weight, output.bias);
}

at::Tensor TensorStepDecoder::feed_forward(const at::Tensor& x,
                                           const FeedForwardWeights& part) const {
    return around(x, part.norm, [&](const at::Tensor& in) {
        const at::Tensor inner = at::linear(in, part.inner.weight, part.inner.bias);
        const at::Tensor active = config_.activation == TransformerConfig::Activation::relu
                                      ? at::relu(inner)
                                      : at::gelu(inner);
        return at::linear(active, part.output.weight, part.output.bias);
    });
}

at::Tensor TensorStepDecoder::encode(std::span<const Source> sources) {
    std::size_t longest = 0;
    for (const Source& source : sources)
        longest = std::max(longest, source.size());
    std::vector<std::int64_t> ids, lengths;
    for (const Source& source : sources) {
        ids.insert(ids.end(), source.begin(), source.end());
        ids.resize(ids.size() + longest - source.size(), config_.end_id);
        lengths.push_back(static_cast<std::int64_t>(source.size()));
    }
    const auto rows = static_cast<std::int64_t>(sources.size());
    const auto length = static_cast<std::int64_t>(longest);
    HETSEQ_ASSERT(length > 0 && length <= config_.max_positions);
    const at::Tensor counts = on_device(lengths).unsqueeze(1);
    encoded_mask_ = at::arange(length, counts.options()).unsqueeze(0) < counts;
    at::Tensor x = embed(on_device(ids).view({rows, length}),
                         weights_.source_table,
                         weights_.source_positions.narrow(0, 0, length));
    for (const EncoderLayerWeights& layer : weights_.encoder) {
        x = around(x, layer.self.norm, [&](const at::Tensor& in) {
            const at::Tensor qkv = at::linear(in, layer.self.qkv.weight, layer.self.qkv.bias);
            return attend(qkv.narrow(2, 0, config_.width),
                          qkv.narrow(2, config_.width, 2 * config_.width),
                          {encoded_mask_},
                          layer.self.output);
        });
        x = feed_forward(x, layer.feed_forward);
    }
    return weights_.encoder_norm ? normalised(x, *weights_.encoder_norm) : x;
}

// The rows' keys and values follow their hypotheses; those of the source change only with the
// sentences that the rows belong to.
void TensorStepDecoder::regroup(std::span<const DecoderRow> rows) {
    std::vector<std::int64_t> parents, sentence_of_row;
    for (const DecoderRow& row : rows) {
        parents.push_back(row.parent);
        sentence_of_row.push_back(sentence_of_row_[static_cast<std::size_t>(row.parent)]);
    }
    const at::Tensor from = on_device(parents);
    for (KeyValue& own : own_)
        own = own.index_select(0, from);
    if (source_.empty() || sentence_of_row != sentence_of_row_) {
        const at::Tensor sentences = on_device(sentence_of_row);
        source_.clear();
        for (const KeyValue& encoded : encoded_)
            source_.push_back(encoded.index_select(0, sentences));
        source_mask_ = encoded_mask_.index_select(0, sentences);
    }
    sentence_of_row_ = std::move(sentence_of_row);
}

at::Tensor TensorStepDecoder::decode(const at::Tensor& tokens) {
    at::Tensor x =
        embed(tokens, weights_.target_table, weights_.target_positions.narrow(0, position_, 1));
    const std::int64_t width = config_.width;
    for (std::size_t i = 0; i < weights_.decoder.size(); ++i) {
        const DecoderLayerWeights& layer = weights_.decoder[i];
        x = around(x, layer.self.norm, [&](const at::Tensor& in) {
            const at::Tensor qkv = at::linear(in, layer.self.qkv.weight, layer.self.qkv.bias);
            const at::Tensor newest = qkv.narrow(2, width, 2 * width);
            if (own_.size() == i)
                own_.push_back(newest);
            else
                own_[i] = at::cat({own_[i], newest}, 1);
            return attend(qkv.narrow(2, 0, width), own_[i], {}, layer.self.output);
        });
        x = around(x, layer.cross.norm, [&](const at::Tensor& in) {
            return attend(at::linear(in, layer.cross.query.weight, layer.cross.query.bias),
                          source_[i],
                          {source_mask_},
                          layer.cross.output);
        });
        x = feed_forward(x, layer.feed_forward);
    }
    return (weights_.decoder_norm ? normalised(x, *weights_.decoder_norm) : x).squeeze(1);
}

void TensorStepDecoder::choose(const at::Tensor& scores,
                               const CandidateRule& rule,
                               Candidates& candidates) const {
    const bool is_double = scores.scalar_type() == at::kDouble;
    const at::Tensor log_probabilities =
        at::log_softmax(scores, 1, is_double ? at::kDouble : at::kFloat);  // (rows, V)
    const at::Tensor end =
        log_probabilities.select(1, config_.end_id).to(at::kDouble).to(at::kCPU).contiguous();
    if (!rule.may_end)
        log_probabilities.select(1, config_.end_id).fill_(-std::numeric_limits<double>::infinity());
    if (rule.unknown_penalty != 0)
        log_probabilities.select(1, unknown_id).sub_(rule.unknown_penalty);
    const std::int64_t rows = scores.size(0), there = std::min(rule.count, scores.size(1));
    const auto [values, ids] = log_probabilities.topk(there, 1);
    const at::Tensor values_here = values.to(at::kDouble).to(at::kCPU).contiguous();
    const at::Tensor ids_here = ids.to(at::kInt).to(at::kCPU).contiguous();
    candidates.tokens.assign(static_cast<std::size_t>(rows * rule.count), -1);
    candidates.log_probabilities.assign(candidates.tokens.size(),
                                        -std::numeric_limits<double>::infinity());
    for (std::int64_t row = 0; row < rows; ++row) {
        std::copy_n(ids_here.const_data_ptr<std::int32_t>() + row * there,
                    there,
                    candidates.tokens.begin() + row * rule.count);
        std::copy_n(values_here.const_data_ptr<double>() + row * there,
                    there,
                    candidates.log_probabilities.begin() + row * rule.count);
    }
    candidates.end.assign(end.const_data_ptr<double>(), end.const_data_ptr<double>() + rows);
}

void TensorStepDecoder::step(std::span<const DecoderRow> rows,
                             const CandidateRule& rule,
                             Candidates& candidates) {
    HETSEQ_ASSERT(position_ < config_.max_positions);
    const at::InferenceMode guard;
    regroup(rows);
    std::vector<std::int64_t> tokens;
    for (const DecoderRow& row : rows)
        tokens.push_back(row.token);
    const at::Tensor x = decode(on_device(tokens).unsqueeze(1));
    choose(at::linear(x, weights_.output_table), rule, candidates);
    ++position_;
}

class TensorModel final : public DecoderModel {
public:
    TensorModel(const TransformerConfig& config, const TransformerWeights& weights)
        : config_{config}, weights_{weights} {}

    std::unique_ptr<StepDecoder> start(std::span<const Source> sources) override {
        const at::InferenceMode guard;
        return std::make_unique<TensorStepDecoder>(config_, weights_, sources);
    }

private:
    TransformerConfig config_;
    TransformerWeights weights_;
};

}  // namespace

std::unique_ptr<DecoderModel> make_tensor_decoder(const TransformerConfig& config,
                                                  const TransformerWeights& weights) {
    return std::make_unique<TensorModel>(config, weights);
}

}  // namespace hetseq::detail
