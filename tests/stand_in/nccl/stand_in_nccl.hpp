// NCCL for tests: collectives over MPI on host memory, in the order of a stream of CUDA's stand-in.
// Like the real one with non-blocking communicators, a call returns before it is done. The ranks
// are those of MPI_COMM_WORLD or some of them; MPI must be started with MPI_THREAD_MULTIPLE.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <nccl.h>

#include "../cuda/stand_in_cuda.hpp"

namespace hetseq::stand_in {

/// How NCCL behaves on this rank. Those with an environment variable in the comment start from it.
struct Network {
    int version = NCCL_VERSION_CODE;         // STAND_IN_NCCL_VERSION
    ncclResult_t init_result = ncclSuccess;  // STAND_IN_NCCL_INIT_FAILS_ON=RANK: ncclSystemError
    ncclResult_t call_result = ncclSuccess;  // of the next collectives' calls
    ncclResult_t async_error = ncclSuccess;  // found by ncclCommGetAsyncError from now on
    bool kernels_hang = false;               // until the communicator is aborted
    std::chrono::microseconds launch_time{100};  // STAND_IN_NCCL_LAUNCH_US: until a call is done
    std::chrono::microseconds kernel_time{100};  // STAND_IN_NCCL_KERNEL_US: on the stream
    /// Device memory that NCCL takes at the first collective of a kind and size, of less than
    /// 64 KiB and of more [bytes].
    std::size_t connection_memory = 4u << 20;
};
Network& network();

int aborted_communicators();
int destroyed_communicators();
/// How many of a kind the program has asked for: "a reduction", "an all-reduce", "a broadcast",
/// "a reduce-scatter", "an all-gather"; "a group", of those, with at least one in it.
long calls(const std::string& kind);

}  // namespace hetseq::stand_in
