#pragma once

#include <string>

#include <nccl.h>

#include "hetseq/util/error.hpp"

namespace hetseq::detail {

[[noreturn]] inline void throw_nccl_error(const char* call,
                                          ncclResult_t code,
                                          const char* file,
                                          int line) {
    const std::string text{call};
    throw CommError(text.substr(0, text.find('(')) + " failed",
                    std::string(ncclGetErrorString(code)) + ", " + ncclGetLastError(nullptr) +
                        ", " + file + ":" + std::to_string(line),
                    "NCCL_DEBUG=WARN in the environment makes NCCL say more");
}

}  // namespace hetseq::detail

/// Runs an NCCL call; a failure becomes a CommError. A non-blocking communicator may still be
/// working on it afterwards.
#define NCCL_TRY(call)                                                                    \
    do {                                                                                  \
        const ncclResult_t nccl_try_code = (call);                                        \
        if (nccl_try_code != ncclSuccess && nccl_try_code != ncclInProgress)              \
            ::hetseq::detail::throw_nccl_error(#call, nccl_try_code, __FILE__, __LINE__); \
    } while (false)
