#pragma once

#include <string>

namespace hetseq {

/// Versions for `hetseq info`: "2.28.9", "13.0". None of these needs a GPU. If something is
/// missing, the text says so: "not built", "no driver".

std::string nccl_compiled_version();
/// The version of the library that this process loaded.
std::string nccl_loaded_version();
std::string cuda_compiled_version();
std::string cuda_runtime_version();
/// The newest CUDA version that the installed driver can run.
std::string cuda_driver_version();

}  // namespace hetseq
