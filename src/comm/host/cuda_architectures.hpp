#pragma once

#include <string>

namespace hetseq {

/// A GPU's compute capability.
struct ComputeCapability {
    int major = 0;
    int minor = 0;
};

/// "7.5".
std::string to_string(const ComputeCapability& capability);

/// True if code for `architectures`, a list as CMAKE_CUDA_ARCHITECTURES has it
/// ("75-real;80-real;90"), runs on such a GPU. Machine code runs on GPUs of its generation that are
/// not older; PTX (of an entry without "-real") on all that are not older.
bool runs_on(const std::string& architectures, const ComputeCapability& capability);

}  // namespace hetseq
