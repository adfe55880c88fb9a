#include "hetseq/train/shares/peak_memory.hpp"

#include <fstream>
#include <string>

#include "hetseq/util/process/mapped_blocks.hpp"
#include "hetseq/comm/host/device_memory.hpp"

#include <malloc.h>

namespace hetseq {

namespace {

// Of /proc/self/status, "VmHWM:" for one [MiB].
double status_mb(const std::string& wanted) {
    std::ifstream status{"/proc/self/status"};
    for (std::string key; status >> key; status.ignore(256, '\n'))
        if (double kib = 0; key == wanted && status >> kib)
            return kib / 1024;
    return 0;
}

}  // namespace

double resident_memory_mb() {
    return status_mb("VmRSS:");
}

void PeakMemory::release() {
    tensor_blocks().release();
    malloc_trim(0);
}

void PeakMemory::reset() {
    if (device_.is_cpu())
        std::ofstream{"/proc/self/clear_refs"} << "5\n";  // proc(5): resets VmHWM
    else
        reset_peak_device_memory(device_);
}

double PeakMemory::mb() const {
    return device_.is_cpu() ? status_mb("VmHWM:") : peak_device_memory_mb(device_);
}

}  // namespace hetseq
