#pragma once

#include <string>

#include <torch/nn/module.h>

namespace hetseq::detail {

/// Registers a parameter below `root` under a dotted name ("bert.pooler.dense.weight"), with a
/// module for every part but the last.
at::Tensor register_by_path(torch::nn::Module& root,
                            const std::string& path,
                            at::IntArrayRef shape);

}  // namespace hetseq::detail
