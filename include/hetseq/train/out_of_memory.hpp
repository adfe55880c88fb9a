#pragma once

#include <exception>

namespace hetseq {

/// Whether `error` says that a device's or the host's memory was not enough.
bool is_out_of_memory(const std::exception& error);

}  // namespace hetseq
