#pragma once

#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

namespace hetseq {

/// Collective. Throws CommError on all ranks where `threads` of one is less than `multiple`.
void check_thread_support(const HostComm& world, ThreadSupport threads);

/// Collective. Throws InternalError on all ranks where one is its own peer, or that of a rank whose
/// peer it is not.
void check_peers(const HostComm& world, const std::vector<int>& peers);

}  // namespace hetseq
