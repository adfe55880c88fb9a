#pragma once

#include <string>

#include <cuda_runtime_api.h>

#include "hetseq/util/error.hpp"

namespace hetseq::detail {

[[noreturn]] inline void throw_cuda_error(const char* call,
                                          cudaError_t code,
                                          const char* file,
                                          int line) {
    const std::string text{call};
    throw DeviceError(
        text.substr(0, text.find('(')) + " failed",
        std::string(cudaGetErrorString(code)) + ", " + file + ":" + std::to_string(line));
}

}  // namespace hetseq::detail

/// Runs a CUDA runtime call; a failure becomes a DeviceError.
#define CUDA_TRY(call)                                                                    \
    do {                                                                                  \
        const cudaError_t cuda_try_code = (call);                                         \
        if (cuda_try_code != cudaSuccess)                                                 \
            ::hetseq::detail::throw_cuda_error(#call, cuda_try_code, __FILE__, __LINE__); \
    } while (false)
