#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>

#include "runtime.hpp"

using hetseq::stand_in::fail;
using hetseq::stand_in::report_misuse;
using hetseq::stand_in::stream_of;

namespace {

struct Block {
    std::size_t bytes = 0;
    int device = 0;
};

// Blocks by their address: of devices, and pinned ones of the host.
struct Memory {
    std::mutex mutex;
    std::map<const char*, Block> device;
    std::map<const char*, Block> pinned;
    std::map<int, std::size_t> used;  // by device [bytes]
    long until_failure = -1;
};

Memory& memory() {
    static auto* const memory = new Memory;
    return *memory;
}

bool holds(const std::map<const char*, Block>& blocks, const void* address, std::size_t bytes) {
    const auto* const at = static_cast<const char*>(address);
    auto after = blocks.upper_bound(at);
    if (after == blocks.begin())
        return false;
    const auto& [start, block] = *std::prev(after);
    return at + bytes <= start + block.bytes;
}

// A real copy of other memory is not asynchronous, or reads what its owner has changed since.
void check_copy(const void* to, const void* from, std::size_t bytes, const char* call) {
    const std::lock_guard lock{memory().mutex};
    for (const void* side : {to, from})
        if (!holds(memory().device, side, bytes) && !holds(memory().pinned, side, bytes))
            report_misuse(std::string(call) + " of memory that is neither a device's nor pinned");
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

bool is_pinned(const void* address) {
    const std::lock_guard lock{memory().mutex};
    return holds(memory().pinned, address, 0);
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
    memory().device[static_cast<char*>(*address)] = {bytes, device};
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaFree(void* address) {
    if (address == nullptr)
        return cudaSuccess;
    int device = 0;
    {
        const std::lock_guard lock{memory().mutex};
        const auto found = memory().device.find(static_cast<char*>(address));
        if (found == memory().device.end()) {
            report_misuse("cudaFree of memory that is not a device's");
            return fail(cudaErrorInvalidValue);
        }
        device = found->second.device;
    }
    hetseq::stand_in::drain_device(device);  // as the real one waits
    const std::lock_guard lock{memory().mutex};
    const auto found = memory().device.find(static_cast<char*>(address));
    memory().used[device] -= found->second.bytes;
    memory().device.erase(found);
    std::free(address);
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
    *address = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
    if (*address == nullptr)
        return fail(cudaErrorMemoryAllocation);
    const std::lock_guard lock{memory().mutex};
    memory().pinned[static_cast<char*>(*address)] = {bytes, 0};
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaFreeHost(void* address) {
    hetseq::stand_in::drain_device(hetseq::stand_in::current_device());
    const std::lock_guard lock{memory().mutex};
    if (memory().pinned.erase(static_cast<char*>(address)) == 0) {
        report_misuse("cudaFreeHost of memory that is not pinned");
        return fail(cudaErrorInvalidValue);
    }
    std::free(address);
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
    return stream_of(stream).push("cudaMemcpyAsync", [=] { std::memcpy(to, from, bytes); })
               ? cudaSuccess
               : fail(cudaErrorInvalidResourceHandle);
}

CUDART_CALL cudaError_t cudaMemcpy(void* to,
                                   const void* from,
                                   std::size_t bytes,
                                   cudaMemcpyKind /*kind*/) {
    hetseq::stand_in::launch(nullptr, [=] { std::memcpy(to, from, bytes); });
    return cudaStreamSynchronize(nullptr);
}

CUDART_CALL cudaError_t cudaMemcpyPeerAsync(void* to,
                                            int /*to_device*/,
                                            const void* from,
                                            int /*from_device*/,
                                            std::size_t bytes,
                                            cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
