#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

namespace hetseq {

class PeerChannel;
class Work;

/// Sums tensors between this rank and another one, of which both have a summand, by messages of a
/// channel. A rank's summand leaves when it is ready, though the other one still computes. Blocks
/// of zeros do not travel: of the gradients of word embeddings most rows are zero in a small batch
/// (as OmniReduce leaves out blocks; Fei et al., SIGCOMM 2021).
class PairSum {
public:
    /// `peer` is one of the channel's. `channel` outlives this.
    PairSum(PeerChannel& channel, int peer);

    /// Starts summing `tensor` (n), floating point, contiguous and of the channel's device, in
    /// place. Both ranks call it in the same order, behind what else they have sent each other. The
    /// sums are there after `wait`, in the order of the starts, and have the same bits on both.
    std::unique_ptr<Work> start(const at::Tensor& tensor) const;

private:
    PeerChannel& channel_;
    int peer_;
};

/// The part of `tensor` (n) that `PairSum` sends: in (0, 1] where any element is not zero.
double sent_part(const at::Tensor& tensor);
/// From what part of a tensor on all of it is sent.
inline constexpr double sent_whole_from = 0.75;

}  // namespace hetseq
