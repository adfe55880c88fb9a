#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace hetseq {

/// Sums over one micro-batch. Nothing is divided here: the caller knows the global weights.
struct ForwardResult {
    std::vector<at::Tensor> losses;   // scalar sums with graph, by loss term
    std::vector<at::Tensor> metrics;  // scalar sums without graph, by metric; filled in
                                      // Mode::evaluate only
    at::Tensor output{};  // for the model's CorpusScorer, which knows its meaning; may be undefined
};

}  // namespace hetseq
