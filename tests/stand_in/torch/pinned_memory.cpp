#include "pinned_memory.hpp"

#include <cuda_runtime_api.h>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>

#include "../cuda/stand_in_cuda.hpp"

namespace hetseq::stand_in {

namespace {

// The program waits for nothing here, and its copies out of the memory may be under way.
void free_pinned(void* memory) {
    drain_all(c10::cuda::current_device());
    unpin(memory);
}

class PinnedMemory final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        void* memory = nullptr;
        if (bytes > 0)
            C10_CUDA_CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
        return {memory, memory, bytes > 0 ? &free_pinned : &c10::detail::deleteNothing, c10::kCPU};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        default_copy_data(to, from, bytes);
    }
};

}  // namespace

c10::Allocator& pinned_memory() {
    static PinnedMemory memory;
    return memory;
}

}  // namespace hetseq::stand_in
