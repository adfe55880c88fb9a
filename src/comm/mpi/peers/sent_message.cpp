#include "sent_message.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "hetseq/util/error.hpp"

#include "tensor_description.hpp"

namespace hetseq {

namespace {

TensorDescription describe(const at::Tensor& tensor) {
    if (!tensor.defined())
        return {};
    HETSEQ_ASSERT(tensor.layout() == at::kStrided);
    return {tensor.scalar_type(), tensor.requires_grad(), tensor.sizes().vec()};
}

}  // namespace

SentMessage::SentMessage(const std::vector<at::Tensor>& tensors, std::size_t piece_bytes)
    : pieces_{piece_bytes} {
    std::vector<TensorDescription> descriptions;
    for (const at::Tensor& tensor : tensors) {
        descriptions.push_back(describe(tensor));
        if (!tensor.defined() || tensor.numel() == 0)
            continue;
        const at::Tensor& memory = memory_.emplace_back(in_host_memory(tensor));
        pieces_.add(
            {static_cast<const std::byte*>(memory.const_data_ptr()), std::size_t{memory.nbytes()}});
    }
    words_ = to_words(descriptions);
    record_copies();
}

// Without the graph of `tensor`, which would keep more memory.
at::Tensor SentMessage::in_host_memory(const at::Tensor& tensor) {
    const c10::NoGradGuard no_grad;
    const at::Tensor values = tensor.detach().contiguous();
    if (values.is_cpu())
        return values;
    HETSEQ_ASSERT(!copied_from_ || *copied_from_ == values.device());
    copied_from_ = values.device();
    const at::Tensor memory =
        at::empty(values.sizes(), at::TensorOptions(values.scalar_type()).pinned_memory(true));
    memory.copy_(values, /*non_blocking=*/true);
    return memory;
}

void SentMessage::record_copies() {
    if (!copied_from_)
        return;
    const c10::impl::VirtualGuardImpl device{copied_from_->type()};
    copied_.emplace(copied_from_->type());
    copied_->record(device.getStream(*copied_from_));
}

bool SentMessage::ready() const {
    return !copied_ || copied_->query();
}

SentMessage::Part SentMessage::take() {
    const std::span<const std::int64_t> words{words_};
    const MessagePart kind = next_;
    if (kind == MessagePart::piece)
        return {kind, pieces_.take()};
    const bool is_long = words.size() > header_words;
    next_ = kind == MessagePart::header && is_long ? MessagePart::rest : MessagePart::piece;
    return {kind,
            std::as_bytes(kind == MessagePart::header ? words.first(header_words)
                                                      : words.subspan(header_words))};
}

}  // namespace hetseq
