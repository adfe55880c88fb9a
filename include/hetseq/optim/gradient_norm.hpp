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

    /// In two steps, where each rank has the sums of what it holds alone, of the state or of the
    /// model. Writes to `squares` (`all_blocks`), fp64 on the gradients' device, what these
    /// elements add to each block, but for parameters that are counted elsewhere; a GPU writes them
    /// as one number. Their sum over ranks is what `from_squares` takes.
    void held_squares(const at::Tensor& gradients, at::Tensor squares);
    const at::Tensor& from_squares(const at::Tensor& squares);

private:
    /// Elements that are held and counted here: the blocks [begin, end).
    struct Run {
        std::int64_t offset = 0;
        std::int64_t numel = 0;
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    static std::vector<Run> runs_of(const FlatParameters& parameters);
    void reserve_sums(std::int64_t numel);

    std::vector<FlatParameters::Block> blocks_;
    std::vector<std::size_t> block_numbers_;
    std::size_t all_blocks_;
    std::vector<Run> runs_;
    std::vector<double> block_squares_;  // on a CPU
    at::Tensor sums_;                    // on a GPU
    std::vector<at::Tensor> run_sums_;   // views of it, of each run
    at::Tensor all_run_sums_;            // they
    at::Tensor norm_;
};

}  // namespace hetseq
