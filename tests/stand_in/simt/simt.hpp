// Runs CUDA kernels on the CPU, in tests. A source includes this and then the kernel's .cuh, which
// nvcc compiles for GPUs. The threads of a block are fibers that change places at barriers and
// shuffles. It finds wrong results, indices out of range (with a sanitizer) and barriers in
// branches; it finds no races and says nothing of speed.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include <ucontext.h>
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>  // before it could define these words again
#endif

#undef __global__
#undef __device__
#undef __host__
#undef __forceinline__
#undef __launch_bounds__
#undef __shared__
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local  // a thread of the CPU runs one block at a time

namespace hetseq::simt {

struct Dim {
    unsigned x = 1, y = 1, z = 1;
    unsigned count() const { return x * y * z; }
};

/// A kernel that no GPU would run to its end, or not with a certain result.
class KernelError : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

inline thread_local Dim thread_index, block_index, block_size, grid_size;

/// The threads of one block.
class Block {
public:
    Block(unsigned threads, std::function<void()> body);
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    /// Runs all threads to their ends.
    void run();
    /// In a thread: waits for all threads that have not ended.
    void barrier();
    /// In a thread: waits for the lanes of `mask`, all of them with the same one; returns what
    /// `lane` brought.
    std::uint64_t shuffle(unsigned mask, std::uint64_t value, unsigned lane);
    unsigned current() const { return current_; }

private:
    static constexpr std::size_t stack_bytes = 64 << 10;
    static constexpr unsigned warp = 32;
    enum class State { runs, at_barrier, at_shuffle, ended };
    struct Fiber {
        ucontext_t start{};
        std::jmp_buf place{};  // where it goes on
        bool has_begun = false;
        std::unique_ptr<char[]> stack;
        State state = State::runs;
        unsigned mask = 0, lane = 0;
        std::uint64_t value = 0;
    };

    static void enter();
    void resume(unsigned thread);
    [[noreturn]] static void go_on(Fiber& fiber);
    void wait(State state);
    bool run_those_that_can();
    bool open_barrier();
    bool serve_shuffles();
    bool serve_shuffle(unsigned first_of_warp, unsigned mask);
    bool all_ended() const;

    std::vector<Fiber> fibers_;
    std::function<void()> body_;
    std::jmp_buf scheduler_{};
    unsigned current_ = 0;
    std::exception_ptr failure_;  // of a thread
};

/// The block that runs on this thread of the CPU; null while threads run one by one.
inline thread_local Block* block = nullptr;

template <class OneBlock>
void for_each_block(Dim grid, Dim threads, OneBlock&& one_block) {
    grid_size = grid;
    block_size = threads;
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                block_index = {x, y, z};
                one_block();
            }
}

inline void set_thread_index(unsigned thread) {
    thread_index = {thread % block_size.x,
                    thread / block_size.x % block_size.y,
                    thread / block_size.x / block_size.y};
}

/// Runs `kernel()` in all threads of all blocks.
void launch(Dim grid, Dim threads, std::function<void()> kernel);

/// The same, faster, for a kernel without barriers and shuffles.
template <class Kernel>
void launch_independent(Dim grid, Dim threads, Kernel&& kernel) {
    for_each_block(grid, threads, [&] {
        for (unsigned thread = 0; thread < threads.count(); ++thread) {
            set_thread_index(thread);
            kernel();
        }
    });
}

inline Block& running_block() {
    if (block == nullptr)
        throw KernelError("a barrier or shuffle in a kernel that was started without them");
    return *block;
}

template <class T>
T shuffle(unsigned mask, T value, unsigned lane) {
    static_assert(sizeof(T) <= sizeof(std::uint64_t));
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = running_block().shuffle(mask, bits, lane);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace hetseq::simt

// As CUDA calls them.
#define threadIdx hetseq::simt::thread_index
#define blockIdx hetseq::simt::block_index
#define blockDim hetseq::simt::block_size
#define gridDim hetseq::simt::grid_size

inline void __syncthreads() {
    hetseq::simt::running_block().barrier();
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane) {
    return hetseq::simt::shuffle(mask, value, static_cast<unsigned>(lane) % 32);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int other) {
    const unsigned lane = hetseq::simt::running_block().current() % 32;
    return hetseq::simt::shuffle(mask, value, lane ^ static_cast<unsigned>(other));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int by) {
    const unsigned lane = hetseq::simt::running_block().current() % 32;
    const unsigned from = lane + static_cast<unsigned>(by);
    return hetseq::simt::shuffle(mask, value, from < 32 ? from : lane);
}
