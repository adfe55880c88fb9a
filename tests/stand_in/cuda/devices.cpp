#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime.hpp"

using hetseq::stand_in::fail;
using hetseq::stand_in::machine;

namespace {

thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;

struct Misuses {
    std::mutex mutex;
    std::vector<std::string> list;
};

Misuses& misuses() {
    static auto* const misuses = new Misuses;
    return *misuses;
}

long number(const char* variable, long otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::atol(text);
}

hetseq::stand_in::Machine machine_of_environment() {
    hetseq::stand_in::Machine machine;
    machine.devices = static_cast<int>(number("STAND_IN_GPUS", machine.devices));
    machine.first_uuid = static_cast<int>(number("STAND_IN_FIRST_UUID", machine.first_uuid));
    machine.slices = static_cast<int>(number("STAND_IN_MIG_SLICES", machine.slices));
    machine.memory = static_cast<std::size_t>(
                         number("STAND_IN_MEMORY_MB", static_cast<long>(machine.memory >> 20)))
                     << 20;
    machine.driver = static_cast<int>(number("STAND_IN_DRIVER", machine.driver));
    machine.start_up = std::chrono::microseconds{number("STAND_IN_LATENCY_US", 0)};
    if (const char* const capability = std::getenv("STAND_IN_CAPABILITY"))
        std::sscanf(capability, "%d.%d", &machine.major, &machine.minor);
    return machine;
}

bool is_device(int device) {
    return device >= 0 && device < machine().devices;
}

}  // namespace

namespace hetseq::stand_in {

Machine& machine() {
    static auto* const machine = new Machine(machine_of_environment());
    return *machine;
}

int gpu_of(int device) {
    return (machine().first_uuid + device) / machine().slices;
}

// A program that misused CUDA must not end well, unless its tests took the reports.
void end_badly_after_misuse() {
    if (misuses().list.empty())
        return;
    std::fprintf(stderr, "CUDA or NCCL was misused\n");
    std::_Exit(70);
}

void report_misuse(const std::string& what) {
    static const int registered = std::atexit(end_badly_after_misuse);
    static_cast<void>(registered);
    std::fprintf(stderr, "misuse of CUDA or NCCL: %s\n", what.c_str());
    const std::lock_guard lock{misuses().mutex};
    misuses().list.push_back(what);
}

std::vector<std::string> take_misuses() {
    const std::lock_guard lock{misuses().mutex};
    return std::exchange(misuses().list, {});
}

cudaError_t fail(cudaError_t code) {
    last_error = code;
    return code;
}

int current_device() {
    return device_of_thread;
}

}  // namespace hetseq::stand_in

CUDART_CALL cudaError_t cudaGetDeviceCount(int* count) {
    *count = 0;
    if (machine().driver == 0)
        return fail(cudaErrorInsufficientDriver);
    *count = machine().devices;
    return *count > 0 ? cudaSuccess : fail(cudaErrorNoDevice);
}

CUDART_CALL cudaError_t cudaGetDevice(int* device) {
    *device = device_of_thread;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaSetDevice(int device) {
    if (!is_device(device))
        return fail(cudaErrorInvalidDevice);
    device_of_thread = device;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (!is_device(device))
        return fail(cudaErrorInvalidDevice);
    *properties = {};
    std::snprintf(properties->name,
                  sizeof properties->name,
                  "stand-in for a GPU%s",
                  machine().slices > 1 ? " MIG 1g.5gb" : "");
    const int uuid = machine().first_uuid + device;
    std::memcpy(properties->uuid.bytes, &uuid, sizeof uuid);
    properties->pciBusID = hetseq::stand_in::gpu_of(device);
    properties->totalGlobalMem = machine().memory;
    properties->major = machine().major;
    properties->minor = machine().minor;
    properties->multiProcessorCount = 4;
    properties->warpSize = 32;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    if (!is_device(device))
        return fail(cudaErrorInvalidDevice);
    switch (attribute) {
        case cudaDevAttrComputeCapabilityMajor:
            *value = machine().major;
            return cudaSuccess;
        case cudaDevAttrComputeCapabilityMinor:
            *value = machine().minor;
            return cudaSuccess;
        default:
            return fail(cudaErrorNotSupported);
    }
}

CUDART_CALL cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
    *can = 0;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaDriverGetVersion(int* version) {
    *version = machine().driver;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaGetLastError() {
    return std::exchange(last_error, cudaSuccess);
}

CUDART_CALL cudaError_t cudaPeekAtLastError() {
    return last_error;
}

CUDART_CALL const char* cudaGetErrorName(cudaError_t) {
    return "cudaErrorOfTheStandIn";
}

CUDART_CALL const char* cudaGetErrorString(cudaError_t code) {
    switch (code) {
        case cudaSuccess:
            return "no error";
        case cudaErrorMemoryAllocation:
            return "out of memory";
        case cudaErrorInvalidResourceHandle:
            return "invalid resource handle";
        case cudaErrorInvalidDevice:
            return "invalid device ordinal";
        case cudaErrorNoDevice:
            return "no CUDA-capable device is detected";
        case cudaErrorInsufficientDriver:
            return "CUDA driver version is insufficient for CUDA runtime version";
        case cudaErrorNotReady:
            return "device not ready";
        case cudaErrorNoKernelImageForDevice:
            return "no kernel image is available for execution on the device";
        default:
            return "an error that the stand-in does not name";
    }
}
