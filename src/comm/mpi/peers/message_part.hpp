#pragma once

#include <cstddef>

namespace hetseq {

/// A message of tensors is several of MPI, each kind with a tag of its own.
enum class MessagePart : int {
    header,  // the first `header_words` of its description
    rest,    // the others, if any
    piece,   // of its tensors' memory
};

constexpr int tag_of(MessagePart part) noexcept {
    return static_cast<int>(part);
}

}  // namespace hetseq
