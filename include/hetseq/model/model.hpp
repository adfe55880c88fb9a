#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "hetseq/data/micro_batch.hpp"

namespace hetseq {

enum class Mode { train, evaluate };

/// What a forward pass depends on besides parameters and input.
struct ForwardContext {
    Mode mode = Mode::train;
    std::uint64_t seed = 1;  // of the run
    std::int64_t update =
        0;  // counted from 0; with seed and sample ids it fixes every dropout mask
};

/// A metric is a sum over samples or tokens, divided in the end by the global weight of a loss
/// term.
struct MetricSchema {
    std::string name;      // "accuracy"
    std::size_t term = 0;  // index of the loss term whose weight divides it
};

/// Sums over one micro-batch. Nothing is divided here: the caller knows the global weights.
struct ForwardResult {
    std::vector<at::Tensor> losses;  // scalar sums with graph, by loss term
    std::vector<at::Tensor>
        metrics;  // scalar sums without graph, by metric; filled in Mode::evaluate only
};

/// A network and its summed losses. A sample's output may not depend on the other samples of its
/// micro-batch (no batch normalisation): no weighting would make the sum exact.
class Model : public torch::nn::Module {
public:
    virtual std::vector<std::string> loss_terms() const = 0;
    virtual std::vector<MetricSchema> metrics() const = 0;
    virtual ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) = 0;
    /// Whether weight decay applies to the parameter of this name (by custom not to biases and
    /// normalisations).
    virtual bool decays(const std::string& parameter_name) const;
};

/// Throws BadConfig when a module mixes the samples of a micro-batch (batch normalisation).
void check_no_batch_statistics(const torch::nn::Module& model);

}  // namespace hetseq
