#include "hetseq/train/update_status.hpp"

#include <ATen/ATen.h>

namespace hetseq {

namespace {

constexpr std::int64_t out_of_memory = 0;  // ranks that ran out of memory
constexpr std::int64_t non_finite = 1;     // ranks with a loss that is not finite
constexpr std::int64_t first_loss = 2;

}  // namespace

UpdateStatus::UpdateStatus(std::size_t loss_terms, at::Device device)
    : slots_{at::zeros({first_loss + static_cast<std::int64_t>(loss_terms)},
                       at::TensorOptions(at::kDouble).device(device))},
      losses_{slots_.narrow(0, first_loss, static_cast<std::int64_t>(loss_terms))} {}

void UpdateStatus::zero() {
    slots_.zero_();
}

void UpdateStatus::add_loss(std::size_t term, const at::Tensor& loss) {
    losses_[static_cast<std::int64_t>(term)].add_(loss.detach());
}

void UpdateStatus::check_losses() {
    slots_[non_finite].copy_(at::logical_not(at::isfinite(losses_.sum())));
}

void UpdateStatus::mark_out_of_memory() {
    slots_[out_of_memory].fill_(1);
}

UpdateStatus::Reading UpdateStatus::read() const {
    const at::Tensor slots = slots_.to(at::kCPU);
    const double* values = slots.const_data_ptr<double>();
    Reading reading;
    reading.losses.assign(values + first_loss, values + slots.numel());
    if (values[out_of_memory] > 0)
        reading.verdict = Verdict::repeat;
    else if (values[non_finite] > 0)
        reading.verdict = Verdict::skip;
    return reading;
}

}  // namespace hetseq
