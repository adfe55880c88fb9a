#pragma once

namespace hetseq {

/// The largest resident memory of this process, of the host [MiB].
class PeakMemory {
public:
    /// Gives what was freed back to the system, so that it counts again when it is taken.
    static void release();
    /// Starts anew. If the kernel does not allow it, the peak stays that of the whole run.
    void reset();
    double mb() const;
};

}  // namespace hetseq
