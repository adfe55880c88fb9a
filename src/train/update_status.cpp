#include "hetseq/train/update_status.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace hetseq {

namespace {

constexpr std::int64_t out_of_memory = 0;  // ranks that ran out of memory
constexpr std::int64_t first_loss = 1;

}  // namespace

// A sum over ranks is finite only where each rank's loss is.
Verdict verdict_on(std::span<const double> losses, double gradient_norm) {
    if (!std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); }))
        return Verdict::skip_loss;
    return std::isfinite(gradient_norm) ? Verdict::apply : Verdict::skip_gradient;
}

UpdateStatus::UpdateStatus(std::size_t loss_terms, at::Device device, std::size_t squares)
    : loss_terms_{loss_terms},
      all_{at::zeros({first_loss + static_cast<std::int64_t>(loss_terms + squares) + 1},
                     at::TensorOptions(at::kDouble).device(device))},
      slots_{all_.narrow(0, 0, all_.numel() - 1)},
      losses_{slots_.narrow(0, first_loss, static_cast<std::int64_t>(loss_terms))},
      squares_{slots_.narrow(0,
                             first_loss + static_cast<std::int64_t>(loss_terms),
                             static_cast<std::int64_t>(squares))},
      sent_{at::zeros(all_.sizes(), at::kDouble)} {
    if (device.is_cpu())
        return;
    sent_ = sent_.pin_memory();  // or the copy would wait
    arrived_.emplace(device.type());
}

void UpdateStatus::zero() {
    slots_.zero_();
}

void UpdateStatus::add_loss(std::size_t term, const at::Tensor& loss) {
    losses_[static_cast<std::int64_t>(term)].add_(loss.detach());
}

void UpdateStatus::mark_out_of_memory() {
    slots_[out_of_memory].fill_(1);
}

void UpdateStatus::send(const at::Tensor& gradient_norm) {
    all_[-1].copy_(gradient_norm);
    sent_.copy_(all_, /*non_blocking=*/true);
    if (arrived_)
        arrived_->record(
            c10::impl::VirtualGuardImpl(all_.device().type()).getStream(all_.device()));
}

UpdateStatus::Reading UpdateStatus::read() const {
    if (arrived_)
        arrived_->synchronize();
    const double* values = sent_.const_data_ptr<double>();
    const auto losses_end = first_loss + static_cast<std::int64_t>(loss_terms_);
    Reading reading;
    reading.losses.assign(values + first_loss, values + losses_end);
    reading.gradient_norm = values[sent_.numel() - 1];
    reading.verdict = values[out_of_memory] > 0 ? Verdict::repeat
                                                : verdict_on(reading.losses, reading.gradient_norm);
    return reading;
}

}  // namespace hetseq
