#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace hetseq {

class HostComm;

/// Memory that all ranks of one host share (MPI_Win_allocate_shared). If the host's backing store
/// (/dev/shm) is too small or MPI is absent, it is private memory of the same size on each rank.
/// `shared()` tells which; the answer is the same on all ranks of the host.
class SharedWindow {
public:
    /// Collective over `node`, a communicator of ranks on one host. Zero-filled.
    SharedWindow(const HostComm& node, std::size_t bytes);
    ~SharedWindow();
    SharedWindow(SharedWindow&&) noexcept;
    SharedWindow& operator=(SharedWindow&&) noexcept;

    std::span<std::byte> bytes() const noexcept;
    bool shared() const noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace hetseq
