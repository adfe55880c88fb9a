#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>

#include "pinned.hpp"
#include "runtime.hpp"

using hetseq::stand_in::as_streams_see;
using hetseq::stand_in::close_pinned_memory;
using hetseq::stand_in::Copy;
using hetseq::stand_in::fail;
using hetseq::stand_in::is_pinned;
using hetseq::stand_in::report_misuse;
using hetseq::stand_in::stream_of;

namespace {

struct Block {
    std::size_t bytes = 0;
    int device = 0;
};

struct Memory {
    std::mutex mutex;
    std::map<const char*, Block> blocks;  // of devices, by their address
    std::map<int, std::size_t> used;      // by device [bytes]
    long until_failure = -1;
};

Memory& memory() {
    static auto* const memory = new Memory;
    return *memory;
}

bool is_of_device(const void* address, std::size_t bytes) {
    const auto* const at = static_cast<const char*>(address);
    const std::lock_guard lock{memory().mutex};
    const auto& blocks = memory().blocks;
    const auto after = blocks.upper_bound(at);
    if (after == blocks.begin())
        return false;
    const auto& [start, block] = *std::prev(after);
    return at + bytes <= start + block.bytes;
}

// A real copy of other memory is not asynchronous, or reads what its owner has changed since.
void check_copy(const void* to, const void* from, std::size_t bytes, const char* call) {
    for (const void* side : {to, from})
        if (!is_of_device(side, bytes) && !is_pinned(side, bytes))
            report_misuse(std::string(call) + " of memory that is neither a device's nor pinned");
}

// The host may not touch the pinned side of it before it has waited.
bool push_copy(
    void* to, const void* from, std::size_t bytes, const char* call, CUstream_st& stream) {
    hetseq::stand_in::count("copy", call);
    const auto* const source = static_cast<const char*>(from);
    const long time = hetseq::stand_in::order_work(
        stream.number,
        call,
        {hetseq::stand_in::reads(source, bytes),
         hetseq::stand_in::writes(static_cast<const char*>(to), bytes)});
    void* const destination = as_streams_see(to);
    const void* const origin = as_streams_see(from);
    close_pinned_memory(from, bytes, Copy::out_of, stream.number, time);
    close_pinned_memory(to, bytes, Copy::into, stream.number, time);
    return stream.push(call, [=] { std::memcpy(destination, origin, bytes); });
}

}  // namespace

namespace hetseq::stand_in {

std::size_t used_memory() {
    const std::lock_guard lock{memory().mutex};
    std::size_t sum = 0;
    for (const auto& [device, bytes] : memory().used)
        sum += bytes;
    return sum;
}

void fail_allocation_after(long count) {
    const std::lock_guard lock{memory().mutex};
    memory().until_failure = count;
}

}  // namespace hetseq::stand_in

CUDART_CALL cudaError_t cudaMalloc(void** address, std::size_t bytes) {
    const int device = hetseq::stand_in::current_device();
    const std::lock_guard lock{memory().mutex};
    long& until_failure = memory().until_failure;
    std::size_t& used = memory().used[device];
    const bool told_to_fail = until_failure == 0;
    if (until_failure > 0)
        --until_failure;
    if (told_to_fail || used + bytes > hetseq::stand_in::machine().memory)
        return fail(cudaErrorMemoryAllocation);
    *address = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
    if (*address == nullptr)
        return fail(cudaErrorMemoryAllocation);
    std::memset(*address, 0xFF, bytes);  // NaN: nothing may rely on what was there
    used += bytes;
    memory().blocks[static_cast<char*>(*address)] = {bytes, device};
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaFree(void* address) {
    if (address == nullptr)
        return cudaSuccess;
    int device = 0;
    {
        const std::lock_guard lock{memory().mutex};
        const auto found = memory().blocks.find(static_cast<char*>(address));
        if (found == memory().blocks.end()) {
            report_misuse("cudaFree of memory that is not a device's");
            return fail(cudaErrorInvalidValue);
        }
        device = found->second.device;
    }
    hetseq::stand_in::wait_for_device(device, "cudaFree");  // as the real one waits
    const std::lock_guard lock{memory().mutex};
    const auto found = memory().blocks.find(static_cast<char*>(address));
    memory().used[device] -= found->second.bytes;
    hetseq::stand_in::forget_uses(address, found->second.bytes);
    memory().blocks.erase(found);
    std::free(address);
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
    *address = hetseq::stand_in::pin(bytes);
    return *address == nullptr ? fail(cudaErrorMemoryAllocation) : cudaSuccess;
}

CUDART_CALL cudaError_t cudaFreeHost(void* address) {
    hetseq::stand_in::wait_for_device(hetseq::stand_in::current_device(), "cudaFreeHost");
    if (!hetseq::stand_in::unpin(address)) {
        report_misuse("cudaFreeHost of memory that is not pinned");
        return fail(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    const std::lock_guard lock{memory().mutex};
    *total = hetseq::stand_in::machine().memory;
    *free = *total - memory().used[hetseq::stand_in::current_device()];
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
    check_copy(to, from, bytes, "cudaMemcpyAsync");
    return push_copy(to, from, bytes, "cudaMemcpyAsync", stream_of(stream))
               ? cudaSuccess
               : fail(cudaErrorInvalidResourceHandle);
}

CUDART_CALL cudaError_t cudaMemcpy(void* to,
                                   const void* from,
                                   std::size_t bytes,
                                   cudaMemcpyKind /*kind*/) {
    push_copy(to, from, bytes, "cudaMemcpy", stream_of(nullptr));
    hetseq::stand_in::wait_for_stream(nullptr, "cudaMemcpy");
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaMemcpyPeerAsync(void* to,
                                            int /*to_device*/,
                                            const void* from,
                                            int /*from_device*/,
                                            std::size_t bytes,
                                            cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
