// Pinned memory of the host, each block mapped twice: the host's own mapping is closed until the
// host has waited for a copy out of it or into it, and streams use the other one. So a use before
// that is seen, whether or not it made a difference. A system call that meets a closed page fails
// with 'Bad address' instead.
#pragma once

#include <cstddef>

namespace hetseq::stand_in {

/// Null where there is no memory.
void* pin(std::size_t bytes);
/// The same bytes as streams see them; `address` itself where it is not pinned.
void* as_streams_see(const void* address);

/// Until the host has waited for the work of `stream` at `time`, it may not use these bytes (a copy
/// into them), or only read them (out of them). Nothing is done for memory that is not pinned.
enum class Copy { into, out_of };
void close_pinned_memory(
    const void* begin, std::size_t bytes, Copy copy, std::size_t stream, long time);
/// Opens what the host has waited for meanwhile.
void open_pinned_memory();

}  // namespace hetseq::stand_in
