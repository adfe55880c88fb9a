#pragma once

#include <mpi.h>

#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

/// The MPI handle of `comm`, still owned by it, for libraries that take one (HDF5).
/// MPI_COMM_NULL for `HostComm::serial()`.
MPI_Comm mpi_handle(const HostComm& comm) noexcept;

}  // namespace hetseq
