#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/compute_capability.hpp"
#include "hetseq/comm/host/device_memory.hpp"

#include "cuda_devices.hpp"

namespace hetseq {

VisibleCudaDevices visible_cuda_devices() {
    return {{}, "this hetseq was built without CUDA"};
}

int compute_capability(at::Device) {
    throw InternalError("this hetseq was built without CUDA");
}

void make_cuda_device_current(int) {
    throw InternalError("this hetseq was built without CUDA");
}

void release_cached_memory() {}

double used_device_memory_mb(at::Device) {
    return 0;
}

double peak_device_memory_mb(at::Device) {
    return 0;
}

void reset_peak_device_memory(at::Device) {}

}  // namespace hetseq
