#pragma once

#include <memory>

namespace hetseq {

class HostComm;

/// Everything ranks share to read: made once at start, before any corpus, on the main thread.
class DataContext {
public:
    struct Impl;
    /// Collective over `world`. `threads_may_call_mpi`: MPI_THREAD_MULTIPLE was given; otherwise
    /// blocks are read by the caller of `Loader::take`.
    DataContext(const HostComm& world, bool threads_may_call_mpi);
    ~DataContext();
    DataContext(const DataContext&) = delete;
    DataContext& operator=(const DataContext&) = delete;

    Impl& impl() noexcept { return *impl_; }

private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace hetseq
