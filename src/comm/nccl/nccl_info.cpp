#include "hetseq/comm/nccl/nccl_info.hpp"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "comm/host/cuda_try.hpp"
#include "nccl_try.hpp"
#include "nccl_version.hpp"

namespace hetseq {

namespace {

// "13.0" of CUDA's code 13000.
std::string format_cuda_version(int code) {
    return std::to_string(code / 1000) + "." + std::to_string(code / 10 % 100);
}

}  // namespace

std::string nccl_compiled_version() {
    return format_nccl_version(NCCL_VERSION_CODE);
}

std::string nccl_loaded_version() {
    int code = 0;
    NCCL_TRY(ncclGetVersion(&code));
    return format_nccl_version(code);
}

std::string cuda_compiled_version() {
    return format_cuda_version(CUDART_VERSION);
}

std::string cuda_runtime_version() {
    int code = 0;
    CUDA_TRY(cudaRuntimeGetVersion(&code));
    return format_cuda_version(code);
}

std::string cuda_driver_version() {
    int code = 0;
    CUDA_TRY(cudaDriverGetVersion(&code));
    return code == 0 ? "no driver" : format_cuda_version(code);
}

}  // namespace hetseq
