#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hetseq {

/// A set of named tensors.
using TensorDict = std::map<std::string, at::Tensor>;

/// The groups of a micro-batch, where a model looks at several samples together: groups `first` to
/// `first` + `sizes.size()` - 1 of `total` in the update's batch, each of `sizes[i]` consecutive
/// samples. Empty: the model looks at each sample by itself, or nothing is kept of what it sees.
struct BatchGroups {
    std::int64_t first = 0;
    std::int64_t total = 0;
    std::vector<std::int64_t> sizes;
};

/// The input of one forward and backward: collated samples with their weights.
struct MicroBatch {
    // The collator fills these.
    TensorDict tensors;           // as the model expects them
    std::vector<double> weights;  // by loss term: tokens, sentences, images
    /// Tokens of each sample's row, which stand at its beginning, in host memory whatever the
    /// device; empty: not said (see `note_row_lengths`).
    std::vector<std::int64_t> row_lengths;
    // The loader fills these.
    at::Tensor sample_ids;  // (n) int64, positions in the corpus; keys of dropout
    std::int64_t samples = 0;
    std::int64_t units = 0;  // work and speed are counted in them: samples, or target tokens
    std::int64_t padded_tokens = 0;  // samples times the longest row; 0 for rows of one shape
    BatchGroups groups;

    /// Whether it can be cut into smaller ones.
    bool is_divisible() const {
        return groups.sizes.empty() ? samples > 1 : groups.sizes.size() > 1;
    }
};

}  // namespace hetseq
