#pragma once

#include <string>

#include "hetseq/util/error.hpp"

namespace hetseq {

/// Throws DeviceError: a build without CUDA does not work on CUDA tensors.
[[noreturn]] inline void throw_no_cuda(const std::string& problem) {
    throw DeviceError(problem, "this hetseq was built without CUDA", "build the cuda preset");
}

}  // namespace hetseq
