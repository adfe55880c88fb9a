#include "hetseq/app/process.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include <unistd.h>

#include "hetseq/util/clock.hpp"

#include <malloc.h>

namespace hetseq {

void keep_freed_memory() {
    // No mapping of its own for any block: the kernel would clear its pages anew each time, and
    // M_MMAP_THRESHOLD ends at 32 MiB. And a trim threshold that few heaps reach.
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, 2047 << 20);
}

double process_start_seconds() {
    // Field 22 of /proc/self/stat counts clock ticks since boot; the command's name, field 2, may
    // hold blanks.
    std::ifstream stat("/proc/self/stat");
    const std::string text((std::istreambuf_iterator<char>(stat)),
                           std::istreambuf_iterator<char>());
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    std::string field;
    for (int i = 3; i <= 22; ++i)
        fields >> field;
    std::ifstream uptime("/proc/uptime");
    double seconds_up = 0;
    uptime >> seconds_up;
    const double age = seconds_up - std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
    return monotonic_seconds() - age;
}

void end_at_once(int exit_code) {
    std::fflush(nullptr);
    ::_exit(exit_code);
}

}  // namespace hetseq
