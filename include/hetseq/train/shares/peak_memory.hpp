#pragma once

#include <c10/core/Device.h>

namespace hetseq {

/// The resident memory of this process, of the host [MiB].
double resident_memory_mb();

/// The most that this process has taken of a device's memory [MiB]: resident memory of the host, or
/// what tensors take of a GPU's.
class PeakMemory {
public:
    explicit PeakMemory(at::Device device = at::kCPU) : device_{device} {}

    /// Gives what was freed back to the system, so that it counts again when it is taken.
    static void release();
    /// Starts anew. If the kernel does not allow it, the peak stays that of the whole run.
    void reset();
    double mb() const;

private:
    at::Device device_;
};

}  // namespace hetseq
