// A CUDA runtime for tests, on a machine without a GPU: a stream is a thread that runs its work in
// order, and device memory is host memory. It reports uses that a real runtime would punish only
// sometimes, among them uses of memory that nothing has put in order.
//
// STAND_IN_COUNTS names a file that gets, at the end of the program, how often it asked for what:
// lines of a kind (operator, kernel, copy, or wait: of the host, for work that it does not know to
// be done), what it was, and the number, with tabs between them; and the bytes of device memory
// that are still taken.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace hetseq::stand_in {

/// The devices of the machine that is imitated. Each starts from the environment variable in its
/// comment, so that a whole program can be given other ones.
struct Machine {
    int devices = 4;                       // STAND_IN_GPUS
    int first_uuid = 0;                    // STAND_IN_FIRST_UUID: device i has the UUID first + i
    int slices = 1;                        // STAND_IN_MIG_SLICES: so many devices are one GPU (MIG)
    std::size_t memory = 1u << 30;         // STAND_IN_MEMORY_MB, of each device [bytes]
    int major = 8, minor = 0;              // STAND_IN_CAPABILITY="7.0"
    int driver = 13000;                    // STAND_IN_DRIVER; 0: none is installed
    std::chrono::microseconds start_up{};  // STAND_IN_LATENCY_US: each piece of a stream's work
};
Machine& machine();

/// The number of the GPU that `device` is, or is a slice of.
int gpu_of(int device);

/// What some work does with these bytes of memory.
enum class Access { read, write };
struct Use {
    const void* begin = nullptr;
    std::size_t bytes = 0;
    Access access = Access::read;
};
template <class T>
Use reads(const T* begin, std::size_t count) {
    return {begin, count * sizeof(T), Access::read};
}
template <class T>
Use writes(const T* begin, std::size_t count) {
    return {begin, count * sizeof(T), Access::write};
}

/// Puts `work`, which uses no memory of devices, into the queue of `stream`. Null: the default
/// stream.
void launch(cudaStream_t stream, std::function<void()> work);
/// The same of a kernel. `uses` says what memory of devices it touches; `name` must live as long as
/// the program.
void launch(cudaStream_t stream,
            const char* name,
            const std::vector<Use>& uses,
            std::function<void()> work);

/// For work that the caller does in place of `stream`, after `drain`: what it does with memory.
/// `what` must live as long as the program.
void work_in_place(cudaStream_t stream, const char* what, const std::vector<Use>& uses);
/// Waits for all work of `stream`, or of a device, of which the program knows nothing.
void drain(cudaStream_t stream);
void drain_all(int device);
/// The program waits for all work of `stream`; `call` is counted.
void wait_for_stream(cudaStream_t stream, const char* call);

/// For STAND_IN_COUNTS.
void count(const char* kind, const char* what);

/// Uses that no program may make, since the last call; each was written to stderr as well.
std::vector<std::string> take_misuses();

/// How many there are now.
long live_events();
long live_streams();
/// How many were made so far.
long made_events();
/// Bytes of device memory in use, by all devices.
std::size_t used_memory();

/// All allocations of device memory after the next `count` fail; negative: none.
void fail_allocation_after(long count);

/// From now on, every stream says that a CUDA graph is being captured from it, or that none is.
void set_capturing(bool capturing);

/// Whether all of it is host memory that devices can reach, made by cudaHostAlloc.
bool is_pinned(const void* memory, std::size_t bytes = 1);
/// Gives it back. False if that is not where such memory begins.
bool unpin(void* memory);

}  // namespace hetseq::stand_in
