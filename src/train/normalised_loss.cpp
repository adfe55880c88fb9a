#include "normalised_loss.hpp"

#include <ATen/ATen.h>

#include "hetseq/train/status_slots.hpp"

namespace hetseq {

at::Tensor normalised_loss(const ForwardResult& result,
                           std::span<const double> weights,
                           const at::Tensor& status) {
    at::Tensor total;
    for (std::size_t j = 0; j < result.losses.size(); ++j) {
        if (weights[j] == 0)
            continue;
        const at::Tensor loss = result.losses[j] / weights[j];
        status[status_slot::first_loss + static_cast<std::int64_t>(j)].add_(loss.detach());
        total = total.defined() ? total + loss : loss;
    }
    return total;
}

}  // namespace hetseq
