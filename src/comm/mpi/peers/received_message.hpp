#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "pieces.hpp"

namespace hetseq {

/// A message on its way in.
class ReceivedMessage {
public:
    /// Takes memory for the tensors that `words` describe: the host's, pinned for a GPU.
    ReceivedMessage(std::span<const std::int64_t> words,
                    at::Device device,
                    std::size_t piece_bytes);

    bool all_taken() const noexcept { return pieces_.empty(); }
    /// Where the next piece goes.
    std::span<std::byte> take() { return pieces_.take(); }
    bool complete() const noexcept { return pieces_.empty() && in_flight == 0; }

    /// Leaves on `device`. On a GPU the current stream is asked for the copies.
    std::vector<at::Tensor> tensors(at::Device device) const;

    std::size_t in_flight = 0;  // pieces that were taken and have not come

private:
    std::vector<at::Tensor> memory_;
    std::vector<bool> requires_grad_;
    Pieces<std::byte> pieces_;
};

}  // namespace hetseq
