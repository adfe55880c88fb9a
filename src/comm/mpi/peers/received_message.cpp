#include "received_message.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include "tensor_description.hpp"

namespace hetseq {

ReceivedMessage::ReceivedMessage(std::span<const std::int64_t> words,
                                 at::Device device,
                                 std::size_t piece_bytes)
    : pieces_{piece_bytes} {
    for (const TensorDescription& description : from_words(words)) {
        requires_grad_.push_back(description.requires_grad);
        at::Tensor& memory = memory_.emplace_back();
        if (!description.type)
            continue;
        memory = at::empty(description.sizes,
                           at::TensorOptions(*description.type).pinned_memory(!device.is_cpu()));
        pieces_.add({static_cast<std::byte*>(memory.mutable_data_ptr()), memory.nbytes()});
    }
}

// Pinned memory is given back only when the copy out of it is done.
std::vector<at::Tensor> ReceivedMessage::tensors(at::Device device) const {
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> tensors;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
        at::Tensor tensor = memory_[i];
        if (tensor.defined()) {
            tensor = tensor.to(device, /*non_blocking=*/true);
            tensor.set_requires_grad(requires_grad_[i]);
        }
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

}  // namespace hetseq
