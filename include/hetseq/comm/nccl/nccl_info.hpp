#pragma once

#include <string>

namespace hetseq {

/// Versions for `hetseq info`: "2.28.9", "13.0". None needs a GPU; what is missing is said in
/// words: "not built", "no driver".

std::string nccl_compiled_version();
/// The version of the library that this process loaded.
std::string nccl_loaded_version();
std::string cuda_compiled_version();
std::string cuda_runtime_version();
/// The newest CUDA that the installed driver runs.
std::string cuda_driver_version();

}  // namespace hetseq
