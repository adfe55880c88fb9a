#pragma once

#include <span>
#include <vector>

#include <mpi.h>

#include "hetseq/comm/host_comm.hpp"

#include "comm/mpi/mpi_comm_handle.hpp"

namespace hetseq {

struct HostComm::Impl {
    /// Takes ownership of `comm`; MPI_COMM_NULL makes the single rank of `serial()`.
    explicit Impl(MPI_Comm comm);

    MpiCommHandle comm;
    int rank = 0;
    int size = 1;
    std::vector<int> numbers;  // in the job, by rank
};

struct HostRequest::Impl {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<double> buffer;  // what MPI writes to: it outlives a caller that an exception ends
    std::span<double> result;
};

}  // namespace hetseq
