#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hetseq/model/bert/bert_classifiers.hpp"

#include "bert_encoder.hpp"

namespace hetseq::detail {

/// A BERT with a linear layer "classifier" over its labels, and the options of fine-tuning.
class BertClassifier : public BertEncoder {
public:
    /// `architecture`: the class of transformers that config.json names.
    BertClassifier(const BertConfig& config,
                   BertPooler pooler,
                   std::string architecture,
                   BertClassifierSetup setup);

    std::vector<std::string> scores() const override { return setup_.scores; }
    std::unique_ptr<CorpusScorer> corpus_scorer() override;
    double learning_rate_factor(const std::string& parameter_name) const override;
    std::string config_json() const override;
    bool is_new_head(const std::string& tensor_name) const override;
    bool predicts() const override { return true; }

protected:
    /// The dropout before the classifier.
    Dropout next_dropout(ForwardPass& pass) const;
    /// (M, labels) of rows (M, H); fp32 at least.
    at::Tensor logits(const at::Tensor& rows, const Dropout& dropout) const;
    /// Negative log-likelihoods, weighted by class and summed; scores (M, labels).
    at::Tensor loss(const at::Tensor& scores, const at::Tensor& labels) const;

private:
    void freeze();

    std::string architecture_;
    BertClassifierSetup setup_;
    Affine classifier_;         // (labels, H)
    at::Tensor class_weights_;  // (labels) fp64 on the CPU; undefined: 1 each
};

}  // namespace hetseq::detail
