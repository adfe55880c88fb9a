#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

namespace hetseq {

/// The decision of all ranks about an update whose gradients are summed. It is left out where a
/// loss is not finite (`skip_loss`), or where all are and the gradients are not (`skip_gradient`).
enum class Verdict { apply, skip_loss, skip_gradient, repeat };

/// That on an update for which every rank had memory. `losses`: by term, summed over ranks.
Verdict verdict_on(std::span<const double> losses, double gradient_norm);

/// What a rank says of its part of an update: its normalised losses, and what went wrong. Summed
/// over ranks it is what all ranks know of the update. In fp64 whatever the gradients are, so that
/// the losses of many ranks and micro-batches keep their digits.
class UpdateStatus {
public:
    /// On `device`, where the losses are. `squares`: how many numbers ranks tell of the gradients
    /// that they hold alone (`GradientNorm::held_squares`).
    UpdateStatus(std::size_t loss_terms, at::Device device, std::size_t squares = 0);

    void zero();
    /// Adds one micro-batch's part of S_j / W_j.
    void add_loss(std::size_t term, const at::Tensor& loss);
    void mark_out_of_memory();

    /// Contiguous; what is to be summed over ranks, as `StepGate` takes it: ranks that ran out of
    /// memory, then the losses.
    at::Tensor slots() const { return slots_; }      // (1 + loss terms + squares), fp64
    at::Tensor squares() const { return squares_; }  // (squares), a view of it

    /// Sends what the slots hold to the host, with the norm of the gradients (a scalar, fp64, on
    /// the device). Does not wait for the device.
    void send(const at::Tensor& gradient_norm);

    struct Reading {
        Verdict verdict = Verdict::apply;
        std::vector<double> losses;  // S_j / W_j, by loss term
        double gradient_norm = 0;
    };
    /// Waits until what was sent has arrived: not at all where a wait for the device came between.
    Reading read() const;

private:
    std::size_t loss_terms_;
    at::Tensor all_;     // the slots, and the gradients' norm
    at::Tensor slots_;   // a view of it
    at::Tensor losses_;  // (loss terms), a view of it
    at::Tensor squares_;
    at::Tensor sent_;                    // like `all_`, on the host
    std::optional<c10::Event> arrived_;  // on a GPU
};

}  // namespace hetseq
