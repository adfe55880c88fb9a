#pragma once

#include <memory>

#include "hetseq/model/model.hpp"

namespace hetseq {

struct MnistCnnOptions {
    double convolution_dropout = 0.25;
    double hidden_dropout = 0.5;
};

/// The two-convolution network of PyTorch's MNIST example (1,199,882 parameters, same names):
/// conv 1-32 3x3, conv 32-64 3x3, max-pool 2, dropout, linear 9216-128, dropout, linear 128-10.
///
/// Input: "images" (n, 1, 28, 28) floating, normalised; "labels" (n) int64 in [0, 10).
/// Loss term "nll": negative log-likelihood, summed over images. Metric "accuracy". Predictions:
/// "probabilities" (n, 10) float32 and the most probable "label" (n) uint8.
std::shared_ptr<Model> make_mnist_cnn(const MnistCnnOptions& options = {});

}  // namespace hetseq
