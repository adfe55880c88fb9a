#include "cuda_devices.hpp"

#include <algorithm>
#include <cstdlib>

#include <cuda_runtime_api.h>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/compute_capability.hpp"
#include "hetseq/comm/host/device_memory.hpp"
#include "hetseq/comm/host/host_name.hpp"

#include "cuda_architectures.hpp"
#include "cuda_device_name.hpp"
#include "cuda_try.hpp"

namespace hetseq {

namespace {

constexpr double bytes_of_mb = 1 << 20;

// CUDA itself would say so at the first kernel alone.
std::string why_no_code_runs(const ComputeCapability& capability) {
    const std::string compiled = HETSEQ_CUDA_ARCHITECTURES;
    if (runs_on(compiled, capability))
        return {};
    return "its compute capability is " + to_string(capability) +
           ", and this hetseq was compiled for " + compiled;
}

CudaDevice describe(int index) {
    cudaDeviceProp properties{};
    CUDA_TRY(cudaGetDeviceProperties(&properties, index));
    DeviceUuid uuid{};
    std::copy_n(properties.uuid.bytes, uuid.size(), uuid.begin());
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    const std::string name = device_uuid(properties.name, uuid, visible == nullptr ? "" : visible);
    const std::string address =
        pci_address(properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
    return {properties.name,
            name,
            is_slice(properties.name) ? machine_id() + " " + address : name,
            static_cast<std::int64_t>(properties.totalGlobalMem >> 20),
            why_no_code_runs({properties.major, properties.minor})};
}

// CUDA reports a missing driver as one too old.
std::string explain(cudaError_t code) {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
        return "no NVIDIA driver is installed";
    return cudaGetErrorString(code);
}

}  // namespace

VisibleCudaDevices visible_cuda_devices() {
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess) {
        static_cast<void>(cudaGetLastError());  // or the next CUDA call would report it again
        return {{}, explain(code)};
    }
    VisibleCudaDevices visible;
    for (int index = 0; index < count; ++index)
        visible.devices.push_back(describe(index));
    if (count == 0)
        visible.why_none = "no CUDA device is visible";
    return visible;
}

int compute_capability(at::Device device) {
    HETSEQ_ASSERT(device.is_cuda());
    cudaDeviceProp properties{};
    CUDA_TRY(cudaGetDeviceProperties(&properties, device.index()));
    return 10 * properties.major + properties.minor;
}

void make_cuda_device_current(int index) {
    CUDA_TRY(cudaSetDevice(index));
}

void release_cached_memory() {
    c10::cuda::CUDACachingAllocator::emptyCache();
}

double used_device_memory_mb(at::Device device) {
    const c10::cuda::CUDAGuard guard{device};
    std::size_t free = 0, total = 0;
    CUDA_TRY(cudaMemGetInfo(&free, &total));
    return static_cast<double>(total - free) / bytes_of_mb;
}

double peak_device_memory_mb(at::Device device) {
    constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
    return static_cast<double>(stats.allocated_bytes[all].peak) / bytes_of_mb;
}

void reset_peak_device_memory(at::Device device) {
    c10::cuda::CUDACachingAllocator::resetPeakStats(device.index());
}

}  // namespace hetseq
