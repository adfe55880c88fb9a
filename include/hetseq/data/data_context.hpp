#pragma once

#include <memory>

namespace hetseq {

class HostComm;

/// What ranks share to read. It is made once at the start, before any corpus, on the main thread.
class DataContext {
public:
    struct Impl;
    /// Collective over `world`. `threads_may_call_mpi`: MPI gave MPI_THREAD_MULTIPLE. Otherwise the
    /// caller of `Loader::take` reads the blocks.
    DataContext(const HostComm& world, bool threads_may_call_mpi);
    ~DataContext();
    DataContext(const DataContext&) = delete;
    DataContext& operator=(const DataContext&) = delete;

    Impl& impl() noexcept { return *impl_; }

private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace hetseq
