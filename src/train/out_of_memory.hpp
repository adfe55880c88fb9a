#pragma once

#include <exception>

namespace hetseq {

/// True if `error` says that a device's or the host's memory was not enough.
bool is_out_of_memory(const std::exception& error);

}  // namespace hetseq
