// Makes LibTorch believe that it has CUDA, without libtorch_cuda.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include "../cuda/stand_in_cuda.hpp"
#include "pinned_memory.hpp"

// Of libc10_cuda, in none of its headers.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace {

bool always(c10::DeviceIndex) {
    return true;
}

// libc10_cuda asks before anything else is called; libtorch_cuda tells it when it is loaded, too.
[[maybe_unused]] const bool is_told = [] {
    c10::cuda::_internal::setHasPrimaryContext(&always);
    return true;
}();

// The registry finds it by this name.
class CUDAHooks final : public at::CUDAHooksInterface {
public:
    explicit CUDAHooks(at::CUDAHooksArgs) {}

    void init() const override { c10::cuda::CUDACachingAllocator::init(c10::cuda::device_count()); }
    // For at::manual_seed; hetseq draws nothing on devices.
    const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
        static const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>();
        return generator;
    }
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return hasCUDA(); }
    bool hasCUDA() const override { return c10::cuda::device_count() > 0; }
    bool hasCUDART() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    int getNumGPUs() const override { return c10::cuda::device_count(); }
    c10::DeviceIndex deviceCount() const override { return c10::cuda::device_count(); }
    c10::DeviceIndex current_device() const override { return c10::cuda::current_device(); }
    c10::DeviceIndex getCurrentDevice() const override { return c10::cuda::current_device(); }
    void setCurrentDevice(c10::DeviceIndex device) const override { c10::cuda::set_device(device); }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
        return c10::cuda::ExchangeDevice(device);
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
        return c10::cuda::MaybeExchangeDevice(device);
    }
    bool isPinnedPtr(const void* memory) const override {
        return hetseq::stand_in::is_pinned(memory);
    }
    c10::Allocator* getPinnedMemoryAllocator() const override {
        return &hetseq::stand_in::pinned_memory();
    }
    c10::Allocator* getCUDADeviceAllocator() const override {
        return c10::cuda::CUDACachingAllocator::get();
    }
    c10::Device getDeviceFromPtr(void*) const override {
        return {c10::kCUDA, c10::cuda::current_device()};
    }
    void deviceSynchronize(c10::DeviceIndex) const override { c10::cuda::device_synchronize(); }
};

}  // namespace

namespace at {
REGISTER_CUDA_HOOKS(CUDAHooks);
}
