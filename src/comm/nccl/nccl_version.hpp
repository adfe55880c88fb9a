#pragma once

#include <string>

namespace hetseq {

/// "2.28.9" of NCCL's code 22809.
inline std::string format_nccl_version(int code) {
    return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
           std::to_string(code % 100);
}

}  // namespace hetseq
