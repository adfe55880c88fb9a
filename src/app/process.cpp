#include "hetseq/app/process.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <unistd.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/process/process_stat.hpp"

#include "block_allocator.hpp"
#include <malloc.h>

namespace hetseq {

void keep_freed_memory() {
    // No mapping of its own for any block: the kernel would clear its pages anew each time, and
    // M_MMAP_THRESHOLD ends at 32 MiB. And a trim threshold that few heaps reach.
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, 2047 << 20);
    use_mapped_blocks();
}

// LibTorch's own cache, and oneDNN's below it.
void keep_few_kernels() {
    for (const char* capacity : {"LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"})
        ::setenv(capacity, "128", /*overwrite=*/0);
}

double process_start_seconds() {
    std::ifstream uptime("/proc/uptime");
    double seconds_up = 0;
    uptime >> seconds_up;
    const std::optional<ProcessStat> own = process_stat(::getpid());
    if (!own)
        return monotonic_seconds();
    const double age =
        seconds_up - static_cast<double>(own->start) / static_cast<double>(sysconf(_SC_CLK_TCK));
    return monotonic_seconds() - age;
}

void end_at_once(int exit_code) {
    std::fflush(nullptr);
    ::_exit(exit_code);
}

}  // namespace hetseq
