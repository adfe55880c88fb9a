#pragma once

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

namespace hetseq::test {

/// The environment of a test under mpiexec, whose `main` has started MPI already.
inline MpiEnvironment& environment() {
    static int argc = 0;
    static char** argv = nullptr;
    static MpiEnvironment environment{argc, argv};
    return environment;
}

/// Collective. A communicator of all ranks of the test.
inline HostComm world() {
    return HostComm::world(environment());
}

}  // namespace hetseq::test
