#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/optim/flat_parameters.hpp"

namespace hetseq {

/// sqrt of the summed squares of flat gradients in fp64. All memory is taken by the constructor, so
/// that a norm needs none when memory is full. On a CPU it is summed by the blocks of
/// `FlatParameters`: the same for any number of threads, and however the state is cut over ranks.
class GradientNorm {
public:
    /// For the gradients of `parameters`, or tensors like them.
    explicit GradientNorm(const FlatParameters& parameters);

    /// A scalar in fp64 on their device: the same tensor in each call. Does not wait for the
    /// device.
    const at::Tensor& of(const at::Tensor& gradients);
    /// `of` or `from_squares` returned this tensor last.
    const at::Tensor& last() const noexcept { return norm_; }

    /// In two steps, where each rank has the sums of what it holds alone. Writes to `squares`
    /// (blocks), fp64 on the gradients' device, what these elements add to each block; a GPU writes
    /// them as one number. Their sum over ranks is what `from_squares` takes.
    void held_squares(const at::Tensor& gradients, at::Tensor squares);
    const at::Tensor& from_squares(const at::Tensor& squares);

private:
    /// Blocks [begin, end) of what is held.
    struct HeldBlocks {
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    std::vector<FlatParameters::Block> blocks_;
    std::vector<FlatParameters::Held> held_;
    std::vector<HeldBlocks> held_blocks_;  // of each of these
    std::vector<double> block_squares_;    // on a CPU
    at::Tensor sums_;                      // on a GPU
    std::vector<at::Tensor> held_sums_;    // views of it, of each held run
    at::Tensor all_held_sums_;             // they
    at::Tensor norm_;
};

}  // namespace hetseq
