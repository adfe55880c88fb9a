#include "block_allocator.hpp"

#include <cstdint>

#include <c10/core/CPUAllocator.h>

#include "hetseq/util/process/mapped_blocks.hpp"

namespace hetseq {

namespace {

constexpr std::size_t least_block = std::size_t{64} << 10;
constexpr std::uint8_t priority = 100;  // above LibTorch's own

void give_back(void* block) {
    c10::profiledCPUMemoryReporter().Delete(block);
    tensor_blocks().give_back(block);
}

// Of either kind.
void raw_delete(void* memory) {
    if (tensor_blocks().give_back(memory))
        c10::profiledCPUMemoryReporter().Delete(memory);
    else
        c10::GetDefaultCPUAllocator()->raw_deleter()(memory);
}

class BlockAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        void* const block = bytes >= least_block ? tensor_blocks().take(bytes) : nullptr;
        if (block == nullptr)  // it says itself that there is no more
            return c10::GetDefaultCPUAllocator()->allocate(bytes);
        c10::profiledCPUMemoryReporter().New(block, bytes);
        return {block, block, &give_back, c10::Device(c10::kCPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &raw_delete; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        default_copy_data(to, from, bytes);
    }
};

}  // namespace

void use_mapped_blocks() {
    c10::SetCPUAllocator(new BlockAllocator, priority);
}

}  // namespace hetseq
