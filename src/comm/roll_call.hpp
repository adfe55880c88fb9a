#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <mpi.h>

namespace hetseq {

/// A meeting of all ranks that tells who is missing. Once `meet` has been left by an exception MPI
/// may still write to it.
class RollCall {
public:
    explicit RollCall(MPI_Comm comm);
    RollCall(const RollCall&) = delete;
    RollCall& operator=(const RollCall&) = delete;

    /// Collective. Sleeps until all ranks are here.
    void meet();

    /// From any thread. On rank 0 "ranks 2, 5 have not come", elsewhere that rank 0 hasn't
    /// answered; empty before `meet` and after it.
    std::string missing() const;

private:
    void hear_all();
    void ask_rank_zero();

    MPI_Comm comm_;
    int rank_ = 0;
    int size_ = 1;
    std::atomic<bool> waits_ = false;
    std::unique_ptr<std::atomic<bool>[]> here_;  // by rank, on rank 0
};

}  // namespace hetseq
