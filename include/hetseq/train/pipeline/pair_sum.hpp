#pragma once

#include <cstddef>
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
    /// `peer` is one of the channel's, and has no other object of this class. `channel` outlives
    /// this, and this outlives what it started.
    PairSum(PeerChannel& channel, int peer);
    PairSum(const PairSum&) = delete;
    PairSum& operator=(const PairSum&) = delete;

    /// Starts summing `tensor` (n), floating point, contiguous and of the channel's device, in
    /// place. Both ranks call it in the same order, behind what else they have sent each other, and
    /// wait for what they started in that order before they send anything else. The sums are there
    /// after `wait`, and have the same bits on both.
    std::unique_ptr<Work> start(const at::Tensor& tensor);

private:
    class InFlight;

    PeerChannel& channel_;
    int peer_;
    std::size_t started_ = 0;
    double last_end_s_ = 0;  // of a sum, monotonic clock
};

/// The part of `tensor` (n) that `PairSum` sends: in (0, 1] where any element is not zero.
double sent_part(const at::Tensor& tensor);

}  // namespace hetseq
