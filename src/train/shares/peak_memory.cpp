#include "hetseq/train/shares/peak_memory.hpp"

#include <fstream>
#include <string>

#include <malloc.h>

namespace hetseq {

void PeakMemory::release() {
    malloc_trim(0);
}

void PeakMemory::reset() {
    std::ofstream{"/proc/self/clear_refs"} << "5\n";  // proc(5): resets VmHWM
}

double PeakMemory::mb() const {
    std::ifstream status{"/proc/self/status"};
    for (std::string key; status >> key; status.ignore(256, '\n'))
        if (double kib = 0; key == "VmHWM:" && status >> kib)
            return kib / 1024;
    return 0;
}

}  // namespace hetseq
