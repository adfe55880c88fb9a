#include "pinned.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "order.hpp"
#include "runtime.hpp"

namespace hetseq::stand_in {

namespace {

// A copy that the host has not waited for.
struct Pending {
    const char* begin = nullptr;
    const char* end = nullptr;
    Copy copy = Copy::into;
    std::size_t stream = 0;
    long time = 0;
};

struct Block {
    std::size_t asked_for = 0;  // bytes
    std::size_t bytes = 0;      // whole pages
    char* streams = nullptr;    // the other mapping
    std::vector<Pending> pending;
};

struct Pinned {
    std::mutex mutex;
    std::map<const char*, Block> blocks;
    struct sigaction earlier {};
    bool watches = false;
};

Pinned& pinned() {
    static auto* const pinned = new Pinned;
    return *pinned;
}

std::size_t page_bytes() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

const char* page_of(const char* address) {
    return address - reinterpret_cast<std::uintptr_t>(address) % page_bytes();
}

std::map<const char*, Block>::iterator block_of(const void* address) {
    auto& blocks = pinned().blocks;
    auto found = blocks.upper_bound(static_cast<const char*>(address));
    if (found == blocks.begin())
        return blocks.end();
    --found;
    return static_cast<const char*>(address) < found->first + found->second.bytes ? found
                                                                                  : blocks.end();
}

void protect(const Pending& pending, int allowed) {
    const char* const first = page_of(pending.begin);
    const auto bytes = static_cast<std::size_t>(page_of(pending.end - 1) + page_bytes() - first);
    mprotect(const_cast<char*>(first), bytes, allowed);
}

// A page that two copies share is open for neither.
void protect_all(const char* begin, const Block& block) {
    mprotect(const_cast<char*>(begin), block.bytes, PROT_READ | PROT_WRITE);
    for (const Pending& pending : block.pending)
        if (pending.copy == Copy::out_of)
            protect(pending, PROT_READ);
    for (const Pending& pending : block.pending)
        if (pending.copy == Copy::into)
            protect(pending, PROT_NONE);
}

// The host touched a closed page: a misuse of the very bytes that are copied. The page is open from
// then on, so that the program goes on.
void on_fault(int number, siginfo_t* info, void*) {
    const auto* const address = static_cast<const char*>(info->si_addr);
    const std::lock_guard lock{pinned().mutex};
    const auto found = block_of(address);
    if (found == pinned().blocks.end()) {
        sigaction(number, &pinned().earlier, nullptr);  // a fault of another kind comes again
        return;
    }
    std::vector<Pending>& pending = found->second.pending;
    const auto is_under = [&](Copy copy) {
        return std::any_of(pending.begin(), pending.end(), [&](const Pending& one) {
            return one.copy == copy && one.begin <= address && address < one.end;
        });
    };
    if (is_under(Copy::into))
        report_misuse("pinned memory is used before the copy into it was waited for");
    else if (is_under(Copy::out_of))
        report_misuse("pinned memory is changed before the copy out of it was waited for");
    const char* const page = page_of(address);
    std::erase_if(pending, [&](const Pending& one) {
        return one.begin < page + page_bytes() && page < one.end;
    });
    protect_all(found->first, found->second);
}

void watch() {
    if (std::exchange(pinned().watches, true))
        return;
    struct sigaction action {};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &pinned().earlier);
}

char* map_shared(int file, std::size_t bytes) {
    void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return address == MAP_FAILED ? nullptr : static_cast<char*>(address);
}

}  // namespace

void* pin(std::size_t bytes) {
    const std::size_t whole =
        (std::max<std::size_t>(bytes, 1) + page_bytes() - 1) / page_bytes() * page_bytes();
    const int file = memfd_create("stand-in pinned memory", MFD_CLOEXEC);
    if (file < 0)
        return nullptr;
    const bool is_large_enough = ftruncate(file, static_cast<off_t>(whole)) == 0;
    char* const host = is_large_enough ? map_shared(file, whole) : nullptr;
    char* const streams = host != nullptr ? map_shared(file, whole) : nullptr;
    close(file);
    if (streams == nullptr) {
        if (host != nullptr)
            munmap(host, whole);
        return nullptr;
    }
    const std::lock_guard lock{pinned().mutex};
    pinned().blocks[host] = {bytes, whole, streams, {}};
    return host;
}

bool unpin(void* address) {
    const std::lock_guard lock{pinned().mutex};
    const auto found = pinned().blocks.find(static_cast<char*>(address));
    if (found == pinned().blocks.end())
        return false;
    forget_uses(address, found->second.bytes);
    munmap(found->second.streams, found->second.bytes);
    munmap(address, found->second.bytes);
    pinned().blocks.erase(found);
    return true;
}

bool is_pinned(const void* address, std::size_t bytes) {
    const std::lock_guard lock{pinned().mutex};
    const auto found = block_of(address);
    return found != pinned().blocks.end() &&
           static_cast<const char*>(address) + bytes <= found->first + found->second.asked_for;
}

void* as_streams_see(const void* address) {
    const std::lock_guard lock{pinned().mutex};
    const auto found = block_of(address);
    return found == pinned().blocks.end()
               ? const_cast<void*>(address)
               : found->second.streams + (static_cast<const char*>(address) - found->first);
}

void close_pinned_memory(
    const void* begin, std::size_t bytes, Copy copy, std::size_t stream, long time) {
    const std::lock_guard lock{pinned().mutex};
    const auto found = block_of(begin);
    if (bytes == 0 || found == pinned().blocks.end())
        return;
    watch();
    const auto* const first = static_cast<const char*>(begin);
    const char* const end = std::min(first + bytes, found->first + found->second.bytes);
    found->second.pending.push_back({first, end, copy, stream, time});
    protect_all(found->first, found->second);
}

void open_pinned_memory() {
    const std::lock_guard lock{pinned().mutex};
    for (auto& [begin, block] : pinned().blocks)
        if (std::erase_if(block.pending, [](const Pending& pending) {
                return host_knows(pending.stream, pending.time);
            }) > 0)
            protect_all(begin, block);
}

}  // namespace hetseq::stand_in
