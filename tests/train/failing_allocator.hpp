#pragma once

#include <cstddef>
#include <limits>
#include <new>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace hetseq::test {

/// While it lives, tensors of the CPU come from LibTorch's allocator through it; it counts those of
/// the thread that arms it, and lets one fail.
class FailingAllocator final : public c10::Allocator {
public:
    FailingAllocator() : real_{c10::GetCPUAllocator()} { c10::SetCPUAllocator(this, 1); }
    ~FailingAllocator() override { c10::SetCPUAllocator(real_, 1); }
    FailingAllocator(const FailingAllocator&) = delete;
    FailingAllocator& operator=(const FailingAllocator&) = delete;

    /// From now on; the allocation after `passed` more fails, once.
    static void arm(std::size_t passed = std::numeric_limits<std::size_t>::max()) {
        count = 0;
        fails_at = passed;
    }
    /// Allocations since.
    static std::size_t allocations() { return count; }

    c10::DataPtr allocate(std::size_t bytes) override {
        if (count++ == fails_at)
            throw std::bad_alloc();
        return real_->allocate(bytes);
    }
    c10::DeleterFnPtr raw_deleter() const override { return real_->raw_deleter(); }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        real_->copy_data(to, from, bytes);
    }

private:
    static inline thread_local std::size_t count = 0;
    static inline thread_local std::size_t fails_at = std::numeric_limits<std::size_t>::max();

    c10::Allocator* real_;
};

}  // namespace hetseq::test
