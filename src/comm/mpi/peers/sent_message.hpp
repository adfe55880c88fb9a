#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include "message_part.hpp"
#include "pieces.hpp"

namespace hetseq {

/// A message on its way out. It keeps what it sends.
class SentMessage {
public:
    struct Part {
        MessagePart kind;
        std::span<const std::byte> bytes;
    };

    /// Asks the current stream of a GPU for copies in pinned memory. A tensor in the host's memory
    /// is sent from there.
    SentMessage(const std::vector<at::Tensor>& tensors, std::size_t piece_bytes);

    /// Whether the device has made its copies. Never blocks.
    bool ready() const;
    bool all_taken() const noexcept { return next_ == MessagePart::piece && pieces_.empty(); }
    /// The next to send: header, rest, pieces.
    Part take();

    std::size_t in_flight = 0;  // parts that were taken and have not left

private:
    at::Tensor in_host_memory(const at::Tensor& tensor);
    void record_copies();

    std::vector<std::int64_t> words_;
    std::vector<at::Tensor> memory_;
    std::optional<c10::Device> copied_from_;
    std::optional<c10::Event> copied_;
    Pieces<const std::byte> pieces_;
    MessagePart next_ = MessagePart::header;
};

}  // namespace hetseq
